"""A stencil over an array whose rows are split between two memories."""

from __future__ import annotations

from nearfar.records.together import StencilResult, StencilSplit
from nearfar.report.html.section import Cell, Context, Section, Table, figure_cell
from nearfar.report.html.sections import _forecasts
from nearfar.report.html.sections._threads import IN_CACHE
from nearfar.report.wording import count, say
from nearfar.units import format_size

_VERSIONS = {
    "direct": "border rows are read from the other side",
    "ghost": "each side keeps a copy of the other's border row",
}
#: Times that a split predicts.
PREDICTED = ("near_time_s", "far_time_s", "total_time_s")
#: A row of the table: its name, rows, threads, key of the time, key of the rate.
Side = tuple[str, int, str, str, str]


def section(context: Context) -> Section | None:
    """Return the section, or None if no stencil ran."""
    result = context.run.sections.stencil
    if result is None:
        return _split_alone(context.run.sections.stencil_split)
    below = _forecasts.published_table(result.split.published if result.split else [])
    return Section(
        "stencil",
        "Stencil split between two memories",
        finding(result),
        (),
        [_times(result), *below],
        notes(result),
    )


def _times(result: StencilResult) -> Table:
    """Return the time of each side, next to its prediction if there is one."""
    heads = ["Side", "Rows", "Threads", "One sweep", "Rate"]
    rows = [
        [
            Cell(name),
            Cell(str(rows)),
            Cell(threads),
            figure_cell(result, time),
            figure_cell(result, rate) if rate else Cell("–"),
        ]
        for name, rows, threads, time, rate in sides(result)
    ]
    if result.split:
        heads += ["Predicted", "Error"]
        for row, (_, _, _, time, _) in zip(rows, sides(result), strict=True):
            is_predicted = time in PREDICTED
            row.append(figure_cell(result.split, time) if is_predicted else Cell("–"))
            row.append(Cell(error_of(result, result.split, time) if is_predicted else "–"))
    return Table(heads, rows, "Time of one sweep", frozenset(range(1, len(heads))))


def _split_alone(split: StencilSplit | None) -> Section | None:
    """Return the section of a prediction that was not run yet."""
    if split is None:
        return None
    rows = [
        [Cell(name), Cell(str(rows)), figure_cell(split, key)]
        for name, rows, key in (
            ("near", split.rows - split.far_rows, "near_time_s"),
            ("far", split.far_rows, "far_time_s"),
            ("whole", split.rows, "total_time_s"),
        )
    ]
    table = Table(["Side", "Rows", "One sweep"], rows, "Predicted", frozenset({1, 2}))
    below = _forecasts.published_table(split.published)
    return Section(
        "stencil",
        "Split of a stencil",
        split_finding(split),
        (),
        [table, *below],
        split_notes(split),
    )


def split_finding(split: StencilSplit) -> str:
    """State how many rows to place in far memory."""
    return (
        f"Of {shape_of(split)} elements, {count(split.far_rows, 'row')} on {split.far} make both "
        "sides finish at the same time."
    )


def finding(result: StencilResult) -> str:
    """State the time of a sweep, and which side is slower."""
    text = (
        f"A sweep over {shape_of(result)} elements, {count(result.far_rows, 'row')} of "
        f"them on {result.far}, takes {say(result, 'total_time_s')}"
    )
    if result.near_time_s is None or result.far_time_s is None:
        return f"{text}."
    first, last = sorted((result.near_time_s, result.far_time_s))
    slower = "far" if last == result.far_time_s else "near"
    text += f"; the {slower} side takes {last / first:.2f} times as long as the other"
    alone = [t for t in (result.near_alone_time_s, result.far_alone_time_s) if t is not None]
    if alone:
        gain = min(alone) / result.total_time_s - 1
        text += f", and the whole is {abs(gain):.1%} {'faster' if gain > 0 else 'slower'} than all "
        text += f"rows on the {'near' if alone[0] == min(alone) else 'far'} side"
    if result.split:
        text += f"; the prediction is off by {error_of(result, result.split, 'total_time_s')}"
    return f"{text}."


def shape_of(result: StencilResult | StencilSplit) -> str:
    """Return rows and columns, or planes, rows and columns."""
    lengths = [result.rows, result.cols, *[result.cols] * (result.kernel == "stencil7")]
    return " × ".join(map(str, lengths))


def error_of(result: StencilResult, split: StencilSplit, time: str) -> str:
    """Return predicted over measured, less one, with its sign."""
    return f"{getattr(split, time) / getattr(result, time) - 1:+.1%}"


def sides(result: StencilResult) -> list[Side]:
    """Return the sides that have rows, the total, and the sweeps with all rows on one side."""
    near, far = result.near_threads, result.far_threads
    shared = " (shared)" if result.oversubscribed else ""
    near_rows = result.rows - result.far_rows
    near_rate, far_rate = (f"{side}_bandwidth_bytes_per_s" for side in ("near", "far"))
    found: list[Side] = [
        ("near, slowest thread", near_rows, f"{near}{shared}", "near_time_s", near_rate),
        (
            "far, slowest thread",
            result.far_rows,
            f"{far}{shared}",
            "far_time_s",
            far_rate,
        ),
        ("whole", result.rows, f"{near + far}{shared}", "total_time_s", ""),
        ("all rows near", result.rows, f"{near}", "near_alone_time_s", ""),
        ("all rows far", result.rows, f"{far}", "far_alone_time_s", ""),
    ]
    return [side for side in found if getattr(result, side[3]) is not None]


def notes(result: StencilResult) -> list[str]:
    """State version, timing method and result check."""
    size = format_size(result.rows * result.row_elements * 8)
    lines = [
        f"Two arrays of {size}; version {result.version}: {_VERSIONS[result.version]}. Times are "
        f"means over {result.sweeps} sweeps; rates count 16 bytes an element.",
        "Every repeat equals a serial sweep, bit for bit.",
    ]
    if result.split:
        lines += split_notes(result.split)
    if result.oversubscribed:
        lines.append("Threads shared CPUs (shared): such times are not used in fits.")
    return [*lines, IN_CACHE] if result.in_cache else lines


def split_notes(split: StencilSplit) -> list[str]:
    """State the basis of a predicted split."""
    near_shared, far, alone, element = (
        say(split, key)
        for key in (
            "near_bandwidth_bytes_per_s",
            "far_bandwidth_bytes_per_s",
            "near_alone_bandwidth_bytes_per_s",
            "near_element_time_s",
        )
    )
    return [
        f"Predicted on {split.predicted_on} from copies ({near_shared} near while {far} far, "
        f"{alone} near alone)"
        f" and {element} for an element swept on the near side, nothing far; traffic "
        f"{split.traffic_factor:.3f} times a copy's. Calibration {split.calibration}."
    ]
