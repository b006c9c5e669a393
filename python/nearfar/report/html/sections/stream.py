"""STREAM's four kernels."""

from __future__ import annotations

from nearfar.records.results import StreamKernel, StreamResult, StreamRun
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.html.sections._threads import IN_CACHE, by_threads
from nearfar.report.wording import count, say
from nearfar.units import format_size

_BEST, _MEDIAN = "best_bandwidth_bytes_per_s", "median_bandwidth_bytes_per_s"


def section(context: Context) -> Section | None:
    """Return the section, or None if STREAM did not run."""
    result = context.run.sections.stream
    if result is None:
        return None
    return Section(
        "stream", "STREAM", finding(result), _figures(result), [_table(result)], notes(result)
    )


def finding(result: StreamResult) -> str:
    """State the triad rate with the most threads, and relative to one thread."""
    threads = len(result.cpus)
    shared = " (more threads than CPUs)" if result.oversubscribed else ""
    text = (
        f"STREAM triad runs at {say(result.triad, _MEDIAN)} (best {say(result.triad, _BEST)}) "
        f"with {count(threads, 'thread')}{shared} on {placement(result)}"
    )
    one = next((run for run in runs(result) if len(run.cpus) == 1), None)
    if one is None or threads == 1:
        return f"{text}."
    share = result.triad.median_bandwidth_bytes_per_s / one.triad.median_bandwidth_bytes_per_s
    return f"{text}, {share:.2f} times what one thread gets."


def placement(run: StreamRun) -> str:
    """Return ``dram``, or one tier per array."""
    tiers = (run.tier_a, run.tier_b, run.tier_c)
    if len(set(tiers)) == 1:
        return run.tier_a + (", in a libpmemobj pool" if run.accessor == "pmemobj" else "")
    return ", ".join(f"{name} on {tier}" for name, tier in zip("abc", tiers, strict=True))


def kernels(run: StreamRun) -> list[tuple[str, StreamKernel]]:
    """Return the kernels of a run by name, in STREAM's order."""
    return [("copy", run.copy_), ("scale", run.scale), ("add", run.add), ("triad", run.triad)]


def runs(result: StreamResult) -> list[StreamRun]:
    """Return the sweep, and the top-level run if the sweep lacks it; fewest threads first."""
    places = [(placement(run), run.cpus) for run in result.sweep]
    own = [] if (placement(result), result.cpus) in places else [result]
    return sorted([*result.sweep, *own], key=lambda run: len(run.cpus))


def _figures(result: StreamResult) -> list[Figure]:
    points = [
        (name, len(run.cpus), run.oversubscribed, kernel)
        for index in range(4)
        for run in runs(result)
        if placement(run) == placement(result)
        for name, kernel in [kernels(run)[index]]
    ]
    caption = (
        f"Median rate on {placement(result)}; bars are 95 % intervals. The best rates are in the "
        "table."
    )
    return [by_threads(points, _MEDIAN, caption)]


def _table(result: StreamResult) -> Table:
    rows = [
        [
            Cell(name),
            Cell(str(len(run.cpus)), "shared CPUs" if run.oversubscribed else ""),
            Cell(placement(run)),
            figure_cell(kernel, _MEDIAN),
            figure_cell(kernel, _BEST),
        ]
        for run in runs(result)
        for name, kernel in kernels(run)
    ]
    return Table(
        ["Kernel", "Threads", "Placement", "Median", "Best"],
        rows,
        "Rates by kernel and threads",
        frozenset({1, 3, 4}),
        folded=True,
    )


def notes(result: StreamResult) -> list[str]:
    """State sizes, the result check, and what is not counted."""
    lines = [
        f"Arrays of {format_size(result.size_bytes)} each; results agree with the closed form to "
        f"{result.worst_error:.1e}."
    ]
    if any(kernel.write_allocate for _, kernel in kernels(result)):
        lines.append(
            "Bytes are counted as STREAM counts them. Reads of lines about to be stored "
            "(write-allocate) "
            "are not counted: the real traffic is higher, by a half for copy and scale and "
            "by a third for add and triad."
        )
    return [*lines, IN_CACHE] if result.in_cache else lines
