"""nearfar measures, models, programs and places data on computers with near and far memory.

The public functions are those of ``nearfar.api``: ``nearfar.study()``, ``nearfar.probe("dram")``,
``nearfar.advise(["./program"])``, ``nearfar.simulate(...)`` and others. They are loaded when they
are first used, so that importing the package is fast. ``ARCHITECTURE.md`` lists the layers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nearfar.api import (
        CachesWanted,
        Controller,
        HostChoice,
        Measured,
        MemoryActivity,
        Options,
        PipelineCurves,
        SimRequest,
        SimulatedMemory,
        SplitArray,
        SplitCost,
        SplitThreads,
        StandardInput,
        Target,
        Traced,
        advise,
        compare,
        compare_variants,
        export_device,
        fit_link,
        import_profile,
        list_profiles,
        load,
        place_process,
        predict_contention,
        predict_interleave,
        predict_map,
        predict_pipeline,
        predict_split,
        predict_structure,
        probe,
        probe_matrix,
        simulate,
        study,
        trace,
        write_profile,
    )

__version__ = "0.1.0"

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
    "__version__",
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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'nearfar' has no attribute '{name}'")
    from nearfar import api

    return getattr(api, name)
