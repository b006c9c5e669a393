"""Section on changes since the previous run of the same verb on the same machine."""

from __future__ import annotations

from collections.abc import Sequence

from nearfar.comparison.changes import Change, SettingChange
from nearfar.comparison.matching import compare_runs
from nearfar.comparison.shifts import Shift, shifts
from nearfar.records.numbers import Quantity
from nearfar.records.run import Run
from nearfar.records.sweep import Scalar
from nearfar.report.html.section import Cell, Context, Figure, Section, Table
from nearfar.report.wording import (
    count,
    format_interval,
    format_quantity,
    pages_name,
    percentile,
    when,
)

#: Most changes shown unfolded, the largest first.
_SHOWN = 12


def section(context: Context) -> Section | None:
    """Return the section, or None if there is no earlier run."""
    if not context.previous:
        return None
    path, before = max(context.previous, key=lambda pair: pair[1].started)
    found = compare_runs(context.run, before)
    changes = found.changes
    if not changes:
        finding = (
            f"No figure of the run of {when(before.started)} was measured again in the same way."
        )
        return Section("changes", "What changed", finding)
    apart = (change for change in changes if change.differs())
    moved = sorted(apart, key=lambda change: -change.size())
    rest = [change for change in changes if not change.differs()]
    whole = shifts(changes)
    tables = [
        _whole(whole, context.heads),
        _table(moved[:_SHOWN], f"{_apart(moved)}, largest change first", False, context.heads),
        _table(moved[_SHOWN:], f"Smaller changes: {_apart(moved).lower()}", True, context.heads),
        _table(
            rest, "Figures that agree, or have too few repeats for an interval", True, context.heads
        ),
    ]
    return Section(
        "changes",
        "What changed",
        _finding(context.run, before, changes, moved),
        _figures(whole, context.heads),
        [table for table in tables if table.rows],
        [*setting_lines(found.settings), *_notes(context, before, str(path))],
    )


def setting_lines(settings: Sequence[SettingChange]) -> list[str]:
    """Return one sentence for each setting that differs."""
    return [
        f"{' '.join([*each.path.split('/'), each.key]).strip().replace('_', ' ')} differs: "
        f"{each.before}, then {each.now}"
        for each in settings
    ]


def _apart(moved: Sequence[Change]) -> str:
    if all(change.exact() for change in moved):
        return "Computed figures that differ"
    return "Intervals do not overlap"


def _whole(whole: list[Shift], heads: tuple[str, str]) -> Table:
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
    columns = ["Section", "Figures", _cost(heads)]
    return Table(columns, rows, "Sections as a whole: times longer, rates lower", frozenset({1, 2}))


def _cost(heads: tuple[str, str]) -> str:
    before, now = heads
    return f"Cost, {now} over {before}"


def _figures(whole: list[Shift], heads: tuple[str, str]) -> list[Figure]:
    """Return the chart of all sections: one row per section, with a line at no change."""
    from nearfar.report.charts.drawing import draw
    from nearfar.report.charts.rows import Bar, row_chart

    if len(whole) < 2:
        return []
    bars = [Bar(s.section, s.section, s.cost, s.low, s.high, f"{s.cost:.2f} ×") for s in whole]
    low, high = min(bar.low for bar in bars), max(bar.high for bar in bars)
    chart = row_chart(
        bars,
        f"{_cost(heads)}; 1: no change",
        log=True,
        domain=(min(low / 1.02, 0.9), max(high * 1.02, 1.1)),
    )
    caption = "Sections as a whole: geometric mean over their figures, 95 % intervals."
    return [draw(caption, chart, height=26 * len(bars), origins=())]


def _finding(now: Run, before: Run, changes: list[Change], moved: list[Change]) -> str:
    relation = "Since" if before.started < now.started else "Against"
    since = (
        f"{relation} the run of {when(before.started)}, {count(len(changes), 'figure')} can be "
        "compared"
    )
    noisy = _noisy(now, before)
    if noisy:
        return (
            f"{noisy} too disturbed to show a change. {since}; their differences are not "
            "significant."
        )
    if not moved:
        return f"{since}; {_agreement(changes)}."
    top = moved[0]
    by = "" if all(change.exact() for change in moved) else " by more than their intervals"
    return (
        f"{since}, and {len(moved)} differ{'s' * (len(moved) == 1)}{by}. "
        f"The largest: {_largest(top, _other(now, before))}."
    )


def _largest(change: Change, other: str) -> str:
    if change.is_from_zero():
        value = format_quantity(change.now.key, change.now.value)
        return f"{name(change.now)} is {value}, from 0"
    return f"{name(change.now)} is {change.ratio():.2f} times {other}"


def _other(now: Run, before: Run) -> str:
    return "what it was" if before.started < now.started else "what it is there"


def _agreement(changes: Sequence[Change]) -> str:
    """Say how figures agree of which none differs by more than chance."""
    unjudged = sum(change.agree() is None and change.uncertain() for change in changes)
    if unjudged == len(changes):
        return "none has enough repeats for an interval, so none can be judged"
    if unjudged:
        return f"none differs, but {count(unjudged, 'figure')} cannot be judged: too few repeats"
    if all(change.exact() for change in changes):
        return "all are equal"
    return "all agree within their intervals"


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
    path = [part.replace("_", " ") for part in quantity.path.split("/") if part not in _LISTS]
    what = _NAMES.get(quantity.key) or _without_unit(quantity.key).replace("_", " ")
    heading = " ".join(path if what in path else [*path, what])
    texts = [_condition(key, value) for key, value in quantity.conditions if key not in _HIDDEN]
    where = ", ".join(dict.fromkeys(text for text in texts if text))
    return f"{heading}: {where}" if where else heading


def _without_unit(key: str) -> str:
    for suffix in ("_bytes_per_s", "_per_s", "_ns", "_s", "_J"):
        if key.endswith(suffix):
            return key.removesuffix(suffix)
    return key


#: Figures whose key alone is misunderstood.
_NAMES = {
    "cpu_time_s": "CPU time between requests",
    "stall_s": "kernel time of page migrations",
}
_LISTS = frozenset({"curves", "points", "ratios", "sweep"})
#: Nouns of counted keys.
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


def _table(changes: list[Change], caption: str, folded: bool, heads: tuple[str, str]) -> Table:
    rows = [
        [
            Cell(name(change.now)),
            _quantity_cell(change.before),
            _quantity_cell(change.now),
            Cell("from 0" if change.is_from_zero() else f"{change.ratio():.2f} ×"),
            _verdict(change),
        ]
        for change in changes
    ]
    columns = ["Figure", *heads, "Ratio", "Intervals"]
    return Table(columns, rows, caption, frozenset({1, 2, 3}), folded, stacked=True)


def _verdict(change: Change) -> Cell:
    if change.exact():
        return Cell("none: computed")
    verdicts = {
        True: Cell("overlap"),
        False: Cell("apart", tone="bad"),
        None: Cell("none: too few repeats" if change.uncertain() else "none: an extreme"),
    }
    return verdicts[change.agree()]


def _quantity_cell(quantity: Quantity) -> Cell:
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
