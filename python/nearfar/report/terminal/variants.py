"""Table of ``nearfar run --compare``: times of a program by place of its heap."""

from __future__ import annotations

from rich.console import RenderableType

from nearfar.records.variants import VariantsResult
from nearfar.report.terminal.layout import block, columns, figure
from nearfar.report.wording import origins

_HEADS = {
    "cpu_time_s": "CPU time",
    "time_s": "Wall time",
    "slowdown": "CPU time, ratio",
    "wall_slowdown": "Wall time, ratio",
    "predicted_slowdown": "Predicted",
}


def variants(result: VariantsResult) -> RenderableType:
    """Return one row per variant; without predictions their column is left out."""
    keys = [key for key in _HEADS if any(getattr(row, key) is not None for row in result.variants)]
    rows = [[row.variant, *(figure(row, key) for key in keys)] for row in result.variants]
    table = columns(["Heap", *(_HEADS[key] for key in keys)], rows, 1)
    tiers = ", ".join(f"{name} = {tier}" for name, tier in result.tiers.items())
    notes = [
        f"{result.runs} runs of each, in turns; {tiers}",
        f"ratios are to {result.variants[0].variant}, of runs of the same round",
        "all-near and all-far place the heap alone, a plan also the mappings that it names",
    ]
    found = origins((row, "cpu_time_s") for row in result.variants)
    return block(" ".join(result.program), _finding(result), found, table, notes)


def _finding(result: VariantsResult) -> str:
    first, *others = result.variants
    ratios = [f"{row.variant} {row.slowdown:.2f} ×" for row in others if row.slowdown]
    return f"CPU time against {first.variant}: {', '.join(ratios)}"
