"""An array whose rows two memories share."""

from __future__ import annotations

from nearfar.records.together import StencilResult
from nearfar.report.section import Cell, Context, Section, Table, figure_cell
from nearfar.report.sections._threads import IN_CACHE
from nearfar.report.wording import count, say
from nearfar.units import format_size

_VERSIONS = {
    "direct": "border rows are read across",
    "ghost": "each side keeps a copy of the other's border row",
}
#: A row of the table: its name, rows, threads, key of the time, key of the rate.
Side = tuple[str, int, str, str, str]


def section(context: Context) -> Section | None:
    """The section, or None where no stencil ran."""
    result = context.run.sections.stencil
    if result is None:
        return None
    rows = [
        [Cell(name), Cell(str(rows)), Cell(threads), figure_cell(result, time),
         figure_cell(result, rate) if rate else Cell("–")]
        for name, rows, threads, time, rate in sides(result)
    ]  # fmt: skip
    table = Table(["Side", "Rows", "Threads", "One sweep", "Rate"], rows, "Time of one sweep",
                  frozenset({1, 2, 3, 4}))  # fmt: skip
    return Section("stencil", "Stencil shared by two memories", finding(result), (), [table],
                   notes(result))  # fmt: skip


def finding(result: StencilResult) -> str:
    """The time of a sweep, and which side the other waited for."""
    text = (
        f"A sweep over {result.rows} × {result.cols} elements, {count(result.far_rows, 'row')} of "
        f"them on {result.far}, takes {say(result, 'total_time_s')}"
    )
    if result.near_time_s is None or result.far_time_s is None:
        return f"{text}."
    first, last = sorted((result.near_time_s, result.far_time_s))
    slower = "far" if last == result.far_time_s else "near"
    return f"{text}; the {slower} side takes {last / first:.2f} times as long as the other."


def sides(result: StencilResult) -> list[Side]:
    """The sides that have rows, and the whole."""
    shared = " (shared)" if result.oversubscribed else ""
    found: list[Side] = []
    if result.near_time_s is not None:
        found.append(
            ("near, slowest thread", result.rows - result.far_rows,
             f"{result.near_threads}{shared}", "near_time_s", "near_bandwidth_bytes_per_s")
        )  # fmt: skip
    if result.far_time_s is not None:
        found.append(
            ("far, slowest thread", result.far_rows, f"{result.far_threads}{shared}",
             "far_time_s", "far_bandwidth_bytes_per_s")
        )  # fmt: skip
    threads = result.near_threads + result.far_threads
    return [*found, ("whole", result.rows, f"{threads}{shared}", "total_time_s", "")]


def notes(result: StencilResult) -> list[str]:
    """Version, how times were taken, and the check."""
    size = format_size(result.rows * result.cols * 8)
    told = [
        f"Two arrays of {size}; version {result.version}: {_VERSIONS[result.version]}. Times are "
        f"means over {result.sweeps} sweeps; rates count 16 bytes an element.",
        "Every repeat left the same bits as a plain serial sweep.",
    ]
    if result.oversubscribed:
        told.append("Threads shared processors (shared): such times feed no fit.")
    return [*told, IN_CACHE] if result.in_cache else told
