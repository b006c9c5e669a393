"""Tables of ``nearfar run --compare``: times of a program by place of its memory."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.place.whole_program import places_mappings
from nearfar.records.variants import RunTimes, VariantsResult
from nearfar.report.terminal.layout import block, columns, figure
from nearfar.report.wording import count, format_quantity, origin_of, origins
from nearfar.units import format_size

_RATIOS = {
    "slowdown": "CPU time",
    "wall_slowdown": "Wall time",
    "predicted_slowdown": "CPU time, predicted",
}
#: Runs shorter than this get a note: starting a process and placing the pages of its libraries
#: takes 1 to 3 ms, up to a tenth of this time.
_SHORT_S = 0.03
#: Runs from which on the median of ratios has a 95 % interval, and from which on a standard
#: deviation is shown.
_FEWEST_FOR_INTERVAL, _FEWEST_FOR_DEVIATION = 6, 3


def variants(result: VariantsResult) -> RenderableType:
    """Return the times of each variant and the ratios to the first, as two tables."""
    tiers = ", ".join(f"{name} = {tier}" for name, tier in result.tiers.items())
    notes = [
        f"{count(result.runs, 'run')} of each, in turns; {tiers}",
        "wall time without the time waited for a CPU; User and System: mean CPU time",
        f"ratios to {result.variants[0].variant}: {_interval(result)}",
        _whole(result),
    ]
    notes += [f"disturbed: {reason}" for reason in result.disturbed]
    notes += _on_pages(result)
    if result.tiers.get("far", "").startswith("shm:"):
        notes.append("far is shm:, which is DRAM: these are times on DRAM, not on far memory")
    found = origins((row, "cpu_time_s") for row in result.variants)
    tables = Group(_times(result), Text(""), _ratios(result))
    return block(" ".join(result.program), _finding(result), found, tables, notes)


def _interval(result: VariantsResult) -> str:
    """What ratios are, and whether they have an interval."""
    if result.runs >= _FEWEST_FOR_INTERVAL:
        return "median of the ratios of the rounds (95 % interval)"
    return f"of the medians (too few runs for an interval: --runs {_FEWEST_FOR_INTERVAL})"


def _on_pages(result: VariantsResult) -> list[str]:
    """What pages of different sizes do to the ratios."""
    have, predicted = result.page_bytes, result.predicted_page_bytes
    notes = []
    if predicted and any(have.get(name) != size for name, size in predicted.items()):
        notes.append(
            f"the predictions are for {_pages(predicted)}, the runs had {_pages(have)}: page walks "
            "and first touches differ"
        )
    if len(set(have.values())) > 1:
        first, *others = result.variants
        ratios = [
            f"{each.variant} {each.run_times.user_s / first.run_times.user_s:.2f} ×"
            for each in others
            if first.run_times.user_s
        ]
        notes.append(
            f"the memories have {_pages(have)}: the column System contains first touches, which "
            "are fewer and slower on large pages; ratios of the column User alone: "
            f"{', '.join(ratios)}"
        )
    return notes


def _pages(sizes: dict[str, int]) -> str:
    return ", ".join(f"{format_size(size)} pages ({name})" for name, size in sizes.items())


def _whole(result: VariantsResult) -> str:
    """Memory that all-near and all-far place."""
    if places_mappings(result.tiers.get("far", "")):
        return (
            "all-far places heap, mappings and the program's globals; stacks, code, the page cache "
            "and libraries' globals are not placed"
        )
    return "all-near and all-far place the heap alone: other memory can be on nodes only (numa:1)"


def _times(result: VariantsResult) -> RenderableType:
    deviates = result.runs >= _FEWEST_FOR_DEVIATION
    rows = []
    for row in result.variants:
        origin = origin_of(row, "cpu_time_s")
        cells = _cells(row.run_times, deviates=deviates)
        rows.append([row.variant, *cells, origin.value if origin else "unknown"])
    mean = "Mean ± σ" if deviates else "Mean"
    return columns(["Memory", mean, "Min … max", "User", "System", "Origin"], rows, 1)


def _cells(times: RunTimes, *, deviates: bool) -> list[str]:
    def seconds(value: float) -> str:
        return format_quantity("time_s", value)

    known = deviates and times.stddev_s is not None
    spread = f" ± {seconds(times.stddev_s or 0.0)}" if known else ""
    return [
        seconds(times.mean_s) + spread,
        f"{seconds(times.min_s)} … {seconds(times.max_s)}",
        seconds(times.user_s),
        seconds(times.system_s),
    ]


def _ratios(result: VariantsResult) -> RenderableType:
    """Without predictions, their column is left out."""
    _, *others = result.variants
    keys = [key for key in _RATIOS if any(getattr(row, key) is not None for row in others)]
    rows = [[row.variant, *(figure(row, key) for key in keys)] for row in others]
    return columns(["Ratio", *(_RATIOS[key] for key in keys)], rows, 1)


def _finding(result: VariantsResult) -> str:
    first, *others = result.variants
    shortest_s = min(row.cpu_time_s for row in result.variants)
    if shortest_s < _SHORT_S:
        return (
            f"Too short to compare: of {format_quantity('time_s', shortest_s)} CPU time, the start "
            "of the process is a large part. Give the program more work."
        )
    ratios = [f"{row.variant} {row.slowdown:.2f} ×" for row in others if row.slowdown]
    disturbed = "Disturbed. " if result.disturbed else ""
    return f"{disturbed}CPU time against {first.variant}: {', '.join(ratios)}"
