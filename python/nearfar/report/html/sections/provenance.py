"""The provenance of every number."""

from __future__ import annotations

from collections.abc import Sequence

from nearfar.records.numbers import Conditions, Quantity, SettingNumber, numbers
from nearfar.report.html.section import Cell, Context, Section, Table
from nearfar.report.wording import count, format_interval, format_quantity

#: Most rows of one table; the record has all.
MAX_ROWS = 1000


def section(context: Context) -> Section | None:
    """Return the section, or None if the record has no number."""
    found = list(numbers(context.run.sections))
    quantities = [n for n in found if isinstance(n, Quantity)]
    settings = [n for n in found if isinstance(n, SettingNumber)]
    if not found:
        return None
    by_section: dict[str, list[Quantity]] = {}
    for quantity in quantities:
        by_section.setdefault(quantity.path.partition("/")[0], []).append(quantity)
    tables = [_quantities(name, held) for name, held in by_section.items()]
    if settings:
        tables.append(_settings(settings))
    return Section(
        "provenance",
        "Where every number comes from",
        _finding(context, quantities),
        tables=tables,
        notes=_notes(quantities),
    )


def _finding(context: Context, quantities: list[Quantity]) -> str:
    kinds: dict[str, int] = {}
    for quantity in quantities:
        origin = quantity.provenance.origin.value if quantity.provenance else "of unrecorded origin"
        kinds[origin] = kinds.get(origin, 0) + 1
    by_origin = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
    return f"{count(len(quantities), 'figure')}: {by_origin}. The run's seed is {context.run.seed}."


_COLUMNS = (
    "Number",
    "Under",
    "Value",
    "Origin",
    "Statistic",
    "Spread",
    "Outliers",
    "Seed",
    "Machine",
    "Note",
)
#: Columns that are shown above the table if all rows agree.
_SHARED = ("Seed", "Machine", "Note")


def _quantities(name: str, quantities: list[Quantity]) -> Table:
    common = _common(quantities)
    rows = [_row(quantity, common) for quantity in quantities[:MAX_ROWS]]
    lead = [_exact(common)] if common else []
    kept = list(range(len(_COLUMNS)))
    for column in map(_COLUMNS.index, _SHARED):
        texts = {row[column].text for row in rows}
        if len(texts) == 1:
            kept.remove(column)
            text = texts.pop()
            lead += [f"{_COLUMNS[column].lower()} {text}"] if text not in ("", "–") else []
    heads = [_COLUMNS[column] for column in kept]
    right = {heads.index(h) for h in ("Value", "Spread", "Outliers", "Seed") if h in heads}
    return Table(
        heads,
        [[row[column] for column in kept] for row in rows],
        f"{name}: {count(len(quantities), 'figure')}{_cut(quantities)}",
        frozenset(right),
        folded=True,
        lead=f"For all of them: {'; '.join(lead)}." if lead else "",
    )


def _cut(numbers: Sequence[object]) -> str:
    """Return the caption's note if a table does not show all rows."""
    return f", of which {MAX_ROWS} are shown; run.json has all" * (len(numbers) > MAX_ROWS)


def _common(quantities: list[Quantity]) -> Conditions:
    """Return the conditions that several quantities share."""
    if len(quantities) < 2:
        return ()
    shared = set.intersection(*(set(quantity.conditions) for quantity in quantities))
    return tuple(pair for pair in quantities[0].conditions if pair in shared)


def _row(quantity: Quantity, common: Conditions) -> list[Cell]:
    interval = format_interval(quantity.key, *quantity.interval) if quantity.interval else ""
    start = [
        Cell(quantity.key, quantity.path, code=True),
        Cell(_exact(tuple(pair for pair in quantity.conditions if pair not in common))),
        Cell(format_quantity(quantity.key, quantity.value), interval),
    ]
    entry = quantity.provenance
    if entry is None:
        return [*start, Cell("not recorded", tone="bad"), *[Cell("–")] * 6]
    spread = "–" if entry.spread is None else f"{entry.spread:.1%}"
    seed = "–" if entry.seed is None else str(entry.seed)
    return [
        *start,
        Cell("", origin=entry.origin),
        Cell(f"{entry.statistic} of {entry.samples}"),
        Cell(spread),
        Cell(str(entry.outliers)),
        Cell(seed),
        Cell(entry.machine),
        Cell(entry.note),
    ]


def _exact(conditions: Conditions) -> str:
    """Return conditions with their exact values, for lookup."""
    return "; ".join(f"{key} {value}" for key, value in conditions)


def _settings(settings: list[SettingNumber]) -> Table:
    rows = [
        [Cell(s.key, s.path, code=True), Cell(_exact(s.conditions)), Cell(str(s.value))]
        for s in settings[:MAX_ROWS]
    ]
    return Table(
        ["Number", "Under", "Value"],
        rows,
        f"{count(len(settings), 'setting')}: requested or found, without repeats{_cut(settings)}",
        frozenset({2}),
        folded=True,
    )


def _notes(quantities: list[Quantity]) -> list[str]:
    notes = [
        "Intervals are 95 %: of medians by order statistics, of means by bootstrap; fewer than six "
        "repeats have none. Spread is the interquartile range over the "
        "median. Outliers are counted and kept."
    ]
    if any(q.provenance is None for q in quantities):
        notes.append("A number of unrecorded origin is not evidence.")
    return notes
