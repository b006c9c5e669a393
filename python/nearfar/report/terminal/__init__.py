"""Results as tables for a terminal of 80 columns, one function per result model."""

from nearfar.report.terminal.advising import advice
from nearfar.report.terminal.allocators import malloc
from nearfar.report.terminal.answer import answer
from nearfar.report.terminal.depth import access, blocks, loaded, parallelism, persistence, tails
from nearfar.report.terminal.experiment import experiment
from nearfar.report.terminal.page_placement import page_placement
from nearfar.report.terminal.persistent_structures import intset, map_run
from nearfar.report.terminal.placement import plan_check, run_statistics
from nearfar.report.terminal.predictions import (
    contention,
    contention_model,
    counter_fits,
    figures,
    interleave,
    map_work,
    pipeline,
    split,
    structure,
)
from nearfar.report.terminal.profiles import profiles
from nearfar.report.terminal.programs import program
from nearfar.report.terminal.record import noise, record
from nearfar.report.terminal.results import bandwidth, latency, mapped, published_curve, stream
from nearfar.report.terminal.sheet import sheet
from nearfar.report.terminal.simulation import counts, load_curve, simulated, simulation
from nearfar.report.terminal.summary import summary
from nearfar.report.terminal.sweep import sweep
from nearfar.report.terminal.together import compete, pipeline_run, stencil, stencil_split
from nearfar.report.terminal.variants import variants

__all__ = [
    "access",
    "advice",
    "answer",
    "bandwidth",
    "blocks",
    "compete",
    "contention",
    "contention_model",
    "counter_fits",
    "counts",
    "experiment",
    "figures",
    "interleave",
    "intset",
    "latency",
    "load_curve",
    "loaded",
    "malloc",
    "map_run",
    "map_work",
    "mapped",
    "noise",
    "page_placement",
    "parallelism",
    "persistence",
    "pipeline",
    "pipeline_run",
    "plan_check",
    "profiles",
    "program",
    "published_curve",
    "record",
    "run_statistics",
    "sheet",
    "simulated",
    "simulation",
    "split",
    "stencil",
    "stencil_split",
    "stream",
    "structure",
    "summary",
    "sweep",
    "tails",
    "variants",
]
