"""Where every number comes from."""

from __future__ import annotations

from nearfar.records.walk import Conditions, Quantity, Setting, numbers
from nearfar.report.section import Cell, Context, Section, Table
from nearfar.report.wording import count, format_interval, format_quantity

#: Where it stands on the page.
PLACE = 250


def section(context: Context) -> Section | None:
    """The section, or None where the record holds no number."""
    found = list(numbers(context.run.sections))
    quantities = [n for n in found if isinstance(n, Quantity)]
    settings = [n for n in found if isinstance(n, Setting)]
    if not found:
        return None
    by_section: dict[str, list[Quantity]] = {}
    for quantity in quantities:
        by_section.setdefault(quantity.path.partition("/")[0], []).append(quantity)
    tables = [_quantities(name, held) for name, held in by_section.items()]
    if settings:
        tables.append(_settings(settings))
    return Section(
        "provenance", "Where every number comes from", _finding(context, quantities),
        tables=tables, notes=_notes(quantities),
    )  # fmt: skip


def _finding(context: Context, quantities: list[Quantity]) -> str:
    kinds: dict[str, int] = {}
    for quantity in quantities:
        origin = quantity.provenance.origin.value if quantity.provenance else "of unrecorded origin"
        kinds[origin] = kinds.get(origin, 0) + 1
    told = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
    return f"{count(len(quantities), 'figure')}: {told}. The run's seed is {context.run.seed}."


_COLUMNS = (
    "Number", "Under", "Value", "Origin", "Statistic", "Spread", "Outliers", "Seed", "Machine",
    "Note",
)  # fmt: skip
#: Columns that go above the table where all rows agree.
_SHARED = ("Seed", "Machine", "Note")


def _quantities(name: str, quantities: list[Quantity]) -> Table:
    common = _common(quantities)
    rows = [_row(quantity, common) for quantity in quantities]
    lead = [_told(common)] if common else []
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
        heads, [[row[column] for column in kept] for row in rows],
        f"{name}: {count(len(rows), 'figure')}", frozenset(right), folded=True,
        lead=f"For all of them: {'; '.join(lead)}." if lead else "",
    )  # fmt: skip


def _common(quantities: list[Quantity]) -> Conditions:
    """Conditions that all of several quantities hold under."""
    if len(quantities) < 2:
        return ()
    shared = set.intersection(*(set(quantity.conditions) for quantity in quantities))
    return tuple(pair for pair in quantities[0].conditions if pair in shared)


def _row(quantity: Quantity, common: Conditions) -> list[Cell]:
    interval = format_interval(quantity.key, *quantity.interval) if quantity.interval else ""
    start = [
        Cell(quantity.key, quantity.path, code=True),
        Cell(_told(tuple(pair for pair in quantity.conditions if pair not in common))),
        Cell(format_quantity(quantity.key, quantity.value), interval),
    ]
    entry = quantity.provenance
    if entry is None:
        return [*start, Cell("not recorded", tone="bad"), *[Cell("–")] * 6]
    spread = "–" if entry.spread is None else f"{entry.spread:.1%}"
    seed = "–" if entry.seed is None else str(entry.seed)
    return [
        *start, Cell("", origin=entry.origin), Cell(f"{entry.statistic} of {entry.samples}"),
        Cell(spread), Cell(str(entry.outliers)), Cell(seed), Cell(entry.machine), Cell(entry.note),
    ]  # fmt: skip


def _told(conditions: Conditions) -> str:
    """Conditions with their exact values: this is where one looks a number up."""
    return "; ".join(f"{key} {value}" for key, value in conditions)


def _settings(settings: list[Setting]) -> Table:
    rows = [
        [Cell(s.key, s.path, code=True), Cell(_told(s.conditions)), Cell(str(s.value))]
        for s in settings
    ]
    return Table(
        ["Number", "Under", "Value"], rows,
        f"{count(len(rows), 'setting')}: asked for or found, without repeats behind them",
        frozenset({2}), folded=True,
    )  # fmt: skip


def _notes(quantities: list[Quantity]) -> list[str]:
    notes = [
        "Intervals are 95 %: of medians by order statistics, of means by bootstrap; for fewer than "
        "six repeats, the smallest and the largest. Spread is the interquartile range over the "
        "median. Outliers are counted and kept."
    ]
    if any(q.provenance is None for q in quantities):
        notes.append("A number of unrecorded origin is not evidence.")
    return notes
