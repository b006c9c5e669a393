"""nearfar from Python: the functions that the command line itself calls.

    >>> import nearfar
    >>> counts = nearfar.simulate(nearfar.SimRequest(pattern="random", far="cxl-ddr5"))
    >>> counts.time_s, counts.provenance["time_s"].origin
    >>> counts.to_polars()

Each function measures, computes or reads, prints nothing, and returns its result. Functions that
write a record return a :class:`Measured`: ``result`` is the model of the result
(``nearfar.records``), ``run`` the whole record with the machine and the verdict on noise, and
``folder`` its directory.
Measured results, records, simulations and predictions have ``to_polars()``: a table with one row
per figure. It requires polars.

Errors are subclasses of ``nearfar.errors.NearfarError``, with the next step in ``next_step``.
``progress``: a function that returns a context manager, which yields a ``Progress`` receiver
(``nearfar.measure.progress``). Default: no reports.

The functions are in the modules of this package, by job. Import them from ``nearfar`` or
``nearfar.api``.
"""

from __future__ import annotations

from nearfar.api.measuring import probe, probe_matrix, study
from nearfar.api.predicting import (
    predict_contention,
    predict_interleave,
    predict_map,
    predict_pipeline,
    predict_split,
    predict_structure,
)
from nearfar.api.programs import advise, compare_variants, place_process, trace
from nearfar.api.reading import compare, import_profile, list_profiles, load, write_profile
from nearfar.api.simulating import export_device, fit_link, simulate
from nearfar.process.stdin import StandardInput
from nearfar.simulation.controller import Controller
from nearfar.simulation.memory import MemoryActivity, SimulatedMemory
from nearfar.workflows.host_here import HostChoice
from nearfar.workflows.options import Options
from nearfar.workflows.predicting import PipelineCurves, SplitArray, SplitCost, SplitThreads, Target
from nearfar.workflows.recording import Measured
from nearfar.workflows.simulating import SimRequest
from nearfar.workflows.tracing import CachesWanted, Traced

__all__ = [
    "CachesWanted",
    "Controller",
    "HostChoice",
    "Measured",
    "MemoryActivity",
    "Options",
    "PipelineCurves",
    "SimRequest",
    "SimulatedMemory",
    "SplitArray",
    "SplitCost",
    "SplitThreads",
    "StandardInput",
    "Target",
    "Traced",
    "advise",
    "compare",
    "compare_variants",
    "export_device",
    "fit_link",
    "import_profile",
    "list_profiles",
    "load",
    "place_process",
    "predict_contention",
    "predict_interleave",
    "predict_map",
    "predict_pipeline",
    "predict_split",
    "predict_structure",
    "probe",
    "probe_matrix",
    "simulate",
    "study",
    "trace",
    "write_profile",
]
