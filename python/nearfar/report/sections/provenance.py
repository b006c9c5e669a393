"""Where every number comes from."""

from __future__ import annotations

from nearfar.report.section import Cell, Context, Section, Table
from nearfar.report.walk import Conditions, Quantity, Setting, numbers
from nearfar.report.wording import count, format_interval, format_quantity


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


def _quantities(name: str, quantities: list[Quantity]) -> Table:
    columns = ["Number", "Under", "Value", "Origin", "Statistic", "Samples", "Spread", "Outliers",
               "Seed", "Machine", "Note"]  # fmt: skip
    rows = [_row(quantity) for quantity in quantities]
    caption = f"{name}: {count(len(rows), 'figure')}"
    return Table(columns, rows, caption, frozenset({2, 5, 6, 7, 8}), folded=True)


def _row(quantity: Quantity) -> list[Cell]:
    interval = format_interval(quantity.key, *quantity.interval) if quantity.interval else ""
    start = [
        Cell(quantity.path, quantity.key, code=True),
        Cell(_told(quantity.conditions)),
        Cell(format_quantity(quantity.key, quantity.value), interval),
    ]
    entry = quantity.provenance
    if entry is None:
        return [*start, Cell("not recorded", tone="bad"), *[Cell("–")] * 7]
    spread = "–" if entry.spread is None else f"{entry.spread:.1%}"
    seed = "–" if entry.seed is None else str(entry.seed)
    return [
        *start, Cell("", origin=entry.origin), Cell(entry.statistic), Cell(str(entry.samples)),
        Cell(spread), Cell(str(entry.outliers)), Cell(seed), Cell(entry.machine, code=True),
        Cell(entry.note),
    ]  # fmt: skip


def _told(conditions: Conditions) -> str:
    """Conditions with their exact values: this is where one looks a number up."""
    return "; ".join(f"{key} {value}" for key, value in conditions)


def _settings(settings: list[Setting]) -> Table:
    rows = [
        [Cell(s.path, s.key, code=True), Cell(_told(s.conditions)), Cell(str(s.value))]
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
