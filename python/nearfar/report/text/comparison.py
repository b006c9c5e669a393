"""Two runs or two profiles side by side in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nearfar.records.compare import Change, Comparison
from nearfar.records.shifts import Shift
from nearfar.records.walk import Quantity
from nearfar.report.sections.changes import name
from nearfar.report.text.layout import columns
from nearfar.report.text.sheet import amount, coordinate
from nearfar.report.wording import count

#: Rows printed, the largest changes first; figures of one side alone, likewise.
_SHOWN = 40
_SHOWN_ALONE = 10

_INTERVALS = {True: "overlap", False: "apart", None: ""}


def comparison(
    found: Comparison,
    moved: Sequence[Shift],
    threshold: float,
    sides: tuple[str, str],
    *,
    noisy: bool = False,
) -> RenderableType:
    """The verdict, sections as wholes, matched figures (worse ones, then the largest changes), what
    one side lacks.

    There is no verdict where a side was too noisy.
    """
    worse = found.worse(threshold)
    changes = sorted(found.changes, key=lambda change: -change.size())
    bad = {id(change) for change in worse}
    rows = [*worse, *(change for change in changes if id(change) not in bad)][:_SHOWN]
    parts: list[RenderableType] = [
        _verdict(len(changes), len(worse), [s for s in moved if s.worse(threshold)], threshold,
                 noisy),
        Text(""), *_sections(moved, threshold), _table(rows, bad, sides),
    ]  # fmt: skip
    if len(changes) > _SHOWN:
        parts.append(Text(f"· {len(changes) - _SHOWN} more, changed less: --json - has all"))
    for alone, side in ((found.only_before, sides[0]), (found.only_now, sides[1])):
        parts += _alone(alone, side)
    return Group(*parts)


def figure_name(quantity: Quantity) -> str:
    """A record's figure in words; a profile's by its key and the coordinates of its point."""
    if quantity.path:
        return name(quantity)
    where = ", ".join(coordinate(x, float(value)) for x, value in quantity.conditions)
    return f"{quantity.key}: {where}" if where else quantity.key


def _verdict(
    matched: int, worse: int, whole: Sequence[Shift], threshold: float, noisy: bool
) -> Text:
    limit = f"{100 * threshold:.3g} %"
    told = f"{count(matched, 'figure')} on both sides"
    if noisy:
        seen = f"{worse} seem worse by more than {limit}" if worse else "none seems worse"
        return Text(f"Cannot decide: too noisy. {told}; {seen}.", style="bold yellow")
    if not worse and not whole:
        return Text(f"{told}; none is worse by more than {limit}.", style="green")
    also = f", and as a whole {', '.join(shift.section for shift in whole)}" if whole else ""
    return Text(f"{told}; {worse} worse by more than {limit}{also}.", style="bold red")


def _sections(moved: Sequence[Shift], threshold: float) -> list[RenderableType]:
    """How much each section costs beside what it did, nothing where none has figures enough."""
    if not moved:
        return []
    rows = [
        [shift.section, str(shift.figures), f"{shift.cost:.3f} ×",
         f"{shift.low:.3f}–{shift.high:.3f}", "worse" if shift.worse(threshold) else ""]
        for shift in moved
    ]  # fmt: skip
    heads = ["Section", "Figures", "Cost, mean", "95 %", ""]
    return [columns(heads, rows, 1), Text("")]


def _table(changes: list[Change], worse: set[int], sides: tuple[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("Figure")
    for head in (*sides, "Ratio"):
        table.add_column(Text(head), justify="right", overflow="fold", max_width=20)
    table.add_column("Intervals")
    table.add_column("")
    for change in changes:
        cells = (
            figure_name(change.now),
            _value(change.before),
            _value(change.now),
            f"{change.ratio():.3f} ×",
            _INTERVALS[change.agree()],
            "worse" if id(change) in worse else "",
        )
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _value(quantity: Quantity) -> str:
    return amount(quantity.key, float(quantity.value))


def _alone(quantities: list[Quantity], side: str) -> list[RenderableType]:
    if not quantities:
        return []
    names = [figure_name(quantity) for quantity in quantities[:_SHOWN_ALONE]]
    if len(quantities) > _SHOWN_ALONE:
        names.append(f"and {len(quantities) - _SHOWN_ALONE} more")
    return [Text(""), Text(f"Only in {side}", style="bold"), *(Text(f"· {n}") for n in names)]
