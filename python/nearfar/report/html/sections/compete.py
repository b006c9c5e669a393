"""Contention between near and far memory."""

from __future__ import annotations

from collections import Counter

from nearfar.records.forecasts import CompeteForecast
from nearfar.records.together import CompeteDrop, CompeteResult, CompeteRow
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.html.sections import _forecasts
from nearfar.report.html.sections._threads import IN_CACHE, by_threads
from nearfar.report.wording import count, origins, say
from nearfar.units import format_size, format_time

_NEAR, _FAR, _SUM = (f"{side}_bandwidth_bytes_per_s" for side in ("near", "far", "sum"))
COMPARED_HEADS = ("Near + far threads", "Side")
COMPARED_CAPTION = "Predicted from each side alone, then measured"
#: Most drops on the page; the record has all.
MAX_DROPS = 30


def section(context: Context) -> Section | None:
    """Return the section, or None if contention was not measured."""
    result = context.run.sections.compete
    if result is None:
        return None
    tables = [_rates(result), *_predicted(result)]
    if deepest(result, MAX_DROPS):
        tables.append(_drops(result))
    return Section(
        "compete",
        "Contention between tiers",
        finding(result),
        _figures(result),
        tables,
        notes(result, MAX_DROPS),
    )


def finding(result: CompeteRow) -> str:
    """State the rate of each side, and the number of drops."""
    drops = sum(len(row.drops) for row in _rows(result))
    time = format_time(sum(row.common_time_s for row in _rows(result)))
    drops_text = f"{count(drops, 'drop')} in {time}" if drops else f"no drop in {time}"
    shared = " on shared CPUs" if result.oversubscribed else ""
    return (
        f"While {count(result.far_threads, 'far thread')} copied {result.mode.replace('-', ' to ')}"
        f" ({result.far}) at {say(result, _FAR)}{shared}, "
        f"{count(result.near_threads, 'near thread')} on {result.near} copied at "
        f"{say(result, _NEAR)}; {drops_text}.{_off(result)}"
    )


def _off(result: CompeteRow) -> str:
    """Return a sentence on the prediction, if there was one."""
    if not result.errors:
        return ""
    return (
        f" Predicted from each side alone, the near rate was off by "
        f"{_forecasts.signed_error(result.errors, _NEAR)}, the far one by "
        f"{_forecasts.signed_error(result.errors, _FAR)}."
    )


def _rows(result: CompeteRow) -> list[CompeteRow]:
    return result.rows if isinstance(result, CompeteResult) and result.rows else [result]


def threads_of(row: CompeteRow) -> str:
    """Return ``3 + 1``, near first."""
    return f"{row.near_threads} + {row.far_threads}" + (" (shared)" if row.oversubscribed else "")


def deepest(result: CompeteResult, most: int) -> list[CompeteDrop]:
    """Return the deepest drops of all rows, deepest first."""
    drops = [drop for row in _rows(result) for drop in row.drops]
    return sorted(drops, key=lambda drop: -drop.depth)[:most]


def _figures(result: CompeteResult) -> list[Figure]:
    from nearfar.report.charts.drawing import draw
    from nearfar.report.charts.series import TimeSeries, rates_chart

    rows = _rows(result)
    points = [
        (f"{side} side", row.far_threads, row.oversubscribed, row)
        for side in ("near", "far")
        for row in rows
    ]
    figures = [
        by_threads([p for p in points if p[0].startswith(side)], key, f"{side} side by far threads")
        for side, key in (("near", _NEAR), ("far", _FAR))
        if len(rows) > 1
    ]
    lines = [
        TimeSeries(f"{t.side} {t.cpu}", t.end_s, [rate / 1e9 for rate in t.rate_bytes_per_s])
        for t in result.threads
        if t.end_s
    ]
    found = origins([(result, _NEAR), (result, _FAR)])
    caption = (
        f"Each thread's rate, iteration by iteration, in the first repeat with {threads_of(result)}"
        " threads (near + far)."
    )
    chart = rates_chart(lines, "time (s)", "copy rate (GB/s)")
    return [*figures, draw(caption, chart, height=260, origins=found)] if lines else figures


def _rates(result: CompeteResult) -> Table:
    rows = [
        [Cell(threads_of(row)), *(figure_cell(row, key) for key in (_NEAR, _FAR, _SUM))]
        for row in _rows(result)
    ]
    return Table(
        ["Near + far threads", "Near", "Far", "Sum"],
        rows,
        "Rates of both sides",
        frozenset({1, 2, 3}),
    )


def _predicted(result: CompeteResult) -> list[Table]:
    """Return predictions and their errors, then errors against published tables."""
    if result.forecast is None:
        return []
    compared = _forecasts.of_competition(result)
    return [
        _forecasts.table(COMPARED_HEADS, compared, COMPARED_CAPTION),
        *_forecasts.published_table(result.forecast.published),
    ]


def _drops(result: CompeteResult) -> Table:
    rows = [
        [
            Cell(f"{drop.side}, CPU {drop.cpu}", f"repeat {drop.repeat + 1}"),
            Cell(f"{drop.depth:.0%}"),
            Cell(format_time(drop.length_s)),
            Cell(format_time(drop.period_s) if drop.period_s else "–"),
            Cell(format_time(drop.off_cpu_s)),
            Cell(format_time(drop.steal_s)),
            Cell(str(drop.involuntary_switches)),
            Cell(str(drop.minor_faults + drop.major_faults)),
            Cell(drop.cause),
        ]
        for drop in deepest(result, MAX_DROPS)
    ]
    heads = [
        "Thread",
        "Depth",
        "Length",
        "Every",
        "Off its CPU",
        "Steal",
        "Switches",
        "Faults",
        "Cause",
    ]
    return Table(heads, rows, "Deepest drops", frozenset(range(1, 8)), folded=True)


def notes(result: CompeteResult, max_drops: int) -> list[str]:
    """State sizes, the definition of a drop, and the causes."""
    drops = [drop for row in _rows(result) for drop in row.drops]
    lines = [
        f"Each thread copies between two arrays of {format_size(result.size_bytes)}. Rates are "
        "summed over the span in which all threads ran; bytes are counted as STREAM counts them."
    ]
    if any(row.oversubscribed for row in _rows(result)):
        lines.append("Threads shared CPUs (shared): such rows are not used in fits.")
    if drops:
        causes = Counter(drop.cause for drop in drops)
        lines.append(
            "A drop is a run of iterations below 80 % of the thread's median rate. Causes: "
            + ", ".join(f"{cause} {number}" for cause, number in causes.most_common())
            + ". Steal is counted by the kernel in ticks of 10 ms."
        )
    if result.forecast:
        lines += [forecast_note(row) for row in result.forecast.rows]
    if len(drops) > max_drops:
        lines.append(f"The {max_drops} deepest of {len(drops)} drops are shown.")
    return [*lines, IN_CACHE] if result.in_cache else lines


def forecast_note(row: CompeteForecast) -> str:
    """State the basis of a prediction."""
    alone = [
        say(row, f"{key}_bandwidth_bytes_per_s") for key in ("near_alone", "far_alone", "together")
    ]
    return (
        f"{row.near_threads} + {row.far_threads} predicted on {row.predicted_on} from copies alone:"
        f" {alone[0]} near, {alone[1]} far, {alone[2]} near with all threads. Calibration "
        f"{row.calibration}."
    )
