"""What changed since the previous run of the same verb on the same machine."""

from __future__ import annotations

from nearfar.comparison.changes import Change
from nearfar.comparison.figures import compare_runs
from nearfar.comparison.shifts import Shift, shifts
from nearfar.records.run import Run
from nearfar.records.sweep import Scalar
from nearfar.records.walk import Quantity
from nearfar.report.html.section import Cell, Context, Figure, Section, Table
from nearfar.report.wording import (
    count,
    format_interval,
    format_quantity,
    pages_name,
    percentile,
    when,
)

#: Position on the page.
PLACE = 220

#: Most changes shown unfolded, the largest first.
_SHOWN = 12


def section(context: Context) -> Section | None:
    """Return the section, or None if there is no earlier run."""
    if not context.previous:
        return None
    path, before = max(context.previous, key=lambda pair: pair[1].started)
    changes = compare_runs(context.run, before).changes
    if not changes:
        finding = (
            f"No figure of the run of {when(before.started)} was measured again in the same way."
        )
        return Section("changes", "What changed", finding)
    apart = (change for change in changes if change.agree() is False)
    moved = sorted(apart, key=lambda change: -change.size())
    rest = [change for change in changes if change.agree() is not False]
    whole = shifts(changes)
    tables = [
        _whole(whole),
        _table(moved[:_SHOWN], "Intervals do not overlap, largest change first", False),
        _table(moved[_SHOWN:], "Smaller changes, intervals do not overlap", True),
        _table(rest, "Figures that agree, or have no interval", True),
    ]
    return Section(
        "changes",
        "What changed",
        _finding(context.run, before, changes, moved),
        _figures(whole),
        [table for table in tables if table.rows],
        _notes(context, before, str(path)),
    )


def _whole(whole: list[Shift]) -> Table:
    rows = [
        [
            Cell(shift.section),
            Cell(str(shift.figures)),
            Cell(
                f"{shift.cost:.3f} ×",
                f"{shift.low:.3f}–{shift.high:.3f}",
                tone=("bad" if shift.cost > 1 else "good") if shift.moved() else "",
            ),
        ]
        for shift in whole
    ]
    heads = ["Section", "Figures", "Cost now over then"]
    return Table(heads, rows, "Sections as a whole: times longer, rates lower", frozenset({1, 2}))


def _figures(whole: list[Shift]) -> list[Figure]:
    """Return the chart of all sections: one row per section, with a line at no change."""
    from nearfar.report.charts.drawing import draw
    from nearfar.report.charts.rows import Bar, row_chart

    if len(whole) < 2:
        return []
    bars = [Bar(s.section, s.section, s.cost, s.low, s.high, f"{s.cost:.2f} ×") for s in whole]
    low, high = min(bar.low for bar in bars), max(bar.high for bar in bars)
    chart = row_chart(
        bars,
        "cost now over then; 1: no change",
        log=True,
        domain=(min(low / 1.02, 0.9), max(high * 1.02, 1.1)),
    )
    caption = "Sections as a whole: geometric mean over their figures, 95 % intervals."
    return [draw(caption, chart, height=26 * len(bars), origins=())]


def _finding(now: Run, before: Run, changes: list[Change], moved: list[Change]) -> str:
    since = (
        f"Since the run of {when(before.started)}, {count(len(changes), 'figure')} can be compared"
    )
    noisy = _noisy(now, before)
    if noisy:
        return (
            f"{noisy} too disturbed to show a change. {since}; their differences are not "
            "significant."
        )
    if not moved:
        return f"{since}; all agree within their intervals."
    top = moved[0]
    return (
        f"{since}, and {len(moved)} differ{'s' * (len(moved) == 1)} by more than their intervals. "
        f"The largest: {name(top.now)} is {top.ratio():.2f} times what it was."
    )


def _noisy(now: Run, before: Run) -> str:
    """Return which runs were disturbed, as the start of a sentence; empty if none was."""
    found = [
        name
        for run, name in ((now, "This run"), (before, "The earlier run"))
        if run.noise and run.noise.noisy
    ]
    return "Both runs were" if len(found) == 2 else f"{found[0]} was" if found else ""


def name(quantity: Quantity) -> str:
    """Name a quantity briefly: what it is, and what distinguishes it from its neighbors."""
    path = [part for part in quantity.path.split("/") if part not in _LISTS]
    what = quantity.key.removesuffix("_bytes_per_s").removesuffix("_ns").replace("_", " ")
    heading = " ".join(path if what in path else [*path, what])
    texts = [_condition(key, value) for key, value in quantity.conditions if key not in _HIDDEN]
    where = ", ".join(dict.fromkeys(text for text in texts if text))
    return f"{heading}: {where}" if where else heading


_LISTS = frozenset({"curves", "points", "ratios", "sweep"})
#: Numbers of things by the name of the thing.
_COUNTED = {
    "threads": "thread",
    "chains": "chain",
    "blocks_per_fence": "block",
    "reads": "read",
    "writes": "write",
}
_HIDDEN = frozenset(
    {
        "chaser_cpu",
        "traffic_cpus",
        "interleave_bytes",
        "stalls",
        "effective_last_cache_bytes",
        "effective_last_cache_source",
        "reported_last_cache_bytes",
        "size_bytes",
        "worst_error",
        "queue_depth",
        "file_system",
        "cpu",
        "path",
    }
)


def _condition(key: str, value: Scalar) -> str:
    if isinstance(value, bool):
        return "non-temporal" if value and key == "nontemporal" else ""
    if key in _COUNTED:
        return count(int(value), _COUNTED[key])
    if key == "accessor":
        return "" if value == "mapped" else "in a libpmemobj pool"
    if key == "share":
        return percentile(float(value))
    if key == "stride_bytes" and value == 0:
        return ""
    if key == "offered_bytes_per_s":
        return f"offered {format_quantity(key, float(value))}" if value else "idle"
    if key == "cpus":
        return count(str(value).count(",") + 1, "thread")
    if key == "pages":
        return pages_name(str(value))
    if key.endswith("_bytes") and isinstance(value, int | float):
        return f"{key.removesuffix('_bytes').replace('_', ' ')} {format_quantity(key, value)}"
    return f"against {value}" if key == "against" else str(value)


def _table(changes: list[Change], caption: str, folded: bool) -> Table:
    verdicts = {
        True: Cell("overlap"),
        False: Cell("apart", tone="bad"),
        None: Cell("none recorded"),
    }
    rows = [
        [
            Cell(name(change.now)),
            _figure(change.before),
            _figure(change.now),
            Cell(f"{change.ratio():.2f} ×"),
            verdicts[change.agree()],
        ]
        for change in changes
    ]
    columns = ["Figure", "Before", "Now", "Ratio", "Intervals"]
    return Table(columns, rows, caption, frozenset({1, 2, 3}), folded, stacked=True)


def _figure(quantity: Quantity) -> Cell:
    interval = format_interval(quantity.key, *quantity.interval) if quantity.interval else ""
    origin = quantity.provenance.origin if quantity.provenance else None
    return Cell(format_quantity(quantity.key, quantity.value), interval, origin)


def _notes(context: Context, before: Run, path: str) -> list[str]:
    notes = [
        f"Compared with {path}. Array and file sizes may differ. Of many unchanged figures a few "
        "do not overlap by chance; a whole group that moved together is a change."
    ]
    if before.nearfar_version != context.run.nearfar_version:
        notes.append(
            f"Versions differ: {before.nearfar_version} then, {context.run.nearfar_version} now."
        )
    return notes
