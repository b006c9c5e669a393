"""Results as tables for a terminal of 80 columns, one function a result model."""

from nearfar.report.text.advising import advice
from nearfar.report.text.allocators import malloc
from nearfar.report.text.depth import access, blocks, loaded, parallelism, persistence, tails
from nearfar.report.text.experiment import experiment
from nearfar.report.text.placement import plan_check, run_accounts
from nearfar.report.text.pools import intset, map_run
from nearfar.report.text.predictions import (
    contention,
    contention_model,
    counter_fits,
    figures,
    map_work,
    pipeline,
    split,
    structure,
)
from nearfar.report.text.programs import program
from nearfar.report.text.record import noise, record
from nearfar.report.text.results import bandwidth, latency, mapped, published_curve, stream
from nearfar.report.text.sheet import sheet
from nearfar.report.text.simulation import counts, load_curve, simulation
from nearfar.report.text.sweep import sweep
from nearfar.report.text.together import compete, pipeline_run, stencil, stencil_split

__all__ = [
    "access",
    "advice",
    "bandwidth",
    "blocks",
    "compete",
    "contention",
    "contention_model",
    "counter_fits",
    "counts",
    "experiment",
    "figures",
    "intset",
    "latency",
    "load_curve",
    "loaded",
    "malloc",
    "map_run",
    "map_work",
    "mapped",
    "noise",
    "parallelism",
    "persistence",
    "pipeline",
    "pipeline_run",
    "plan_check",
    "program",
    "published_curve",
    "record",
    "run_accounts",
    "sheet",
    "simulation",
    "split",
    "stencil",
    "stencil_split",
    "stream",
    "structure",
    "sweep",
    "tails",
]
