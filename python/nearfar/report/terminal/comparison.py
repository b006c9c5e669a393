"""A comparison of runs, profiles or answers in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nearfar.comparison.changes import Change, Comparison
from nearfar.comparison.shifts import Shift
from nearfar.records.numbers import Quantity
from nearfar.report.html.sections.changes import name, setting_lines
from nearfar.report.terminal.layout import columns
from nearfar.report.terminal.sheet import amount, coordinate
from nearfar.report.wording import count

#: Maximum numbers of printed rows: changes, largest first, and figures that only one side has.
_SHOWN = 40
_SHOWN_ALONE = 10

_INTERVALS = {True: "overlap", False: "apart", None: ""}


def comparison(
    found: Comparison,
    section_shifts: Sequence[Shift],
    threshold: float,
    sides: tuple[str, str],
    *,
    noisy: bool = False,
) -> RenderableType:
    """Return the comparison as text and tables.

    In this order: the verdict, the shifts of whole sections, the matched figures, and the figures
    that only one side has. Matched figures start with the worse ones, then the better ones, then
    the others, largest changes first. There is no verdict if a side was disturbed.
    """
    worse, improved = found.worse(threshold), found.better(threshold)
    changes = sorted(found.changes, key=lambda change: -change.size())
    seems = "seems " if noisy else ""
    verdicts = {id(c): f"{seems}better" for c in improved}
    verdicts |= {id(c): f"{seems}worse" for c in worse}
    rest = [change for change in changes if id(change) not in verdicts]
    rows = [*worse, *improved, *(change for change in rest if not _is_zero(change))]
    zeros = len(changes) - len(rows)
    parts: list[RenderableType] = [
        _verdict(
            _Numbers(len(changes), len(worse), len(improved), found.unjudged()),
            section_shifts,
            threshold,
            noisy,
        ),
        *_undecided(found.uncertain()),
        *(Text(line) for line in setting_lines(found.settings)),
        Text(""),
        *_sections(section_shifts, threshold, seems),
        _table(rows[:_SHOWN], verdicts, sides),
    ]
    if len(rows) > _SHOWN:
        parts.append(Text(f"· {len(rows) - _SHOWN} more, changed less: --json - has all"))
    if zeros:
        parts.append(Text(f"· {count(zeros, 'figure')} of 0 on both sides: not shown"))
    for alone, side in ((found.only_before, sides[0]), (found.only_now, sides[1])):
        parts += _alone(alone, side)
    return Group(*parts)


def _is_zero(change: Change) -> bool:
    return change.now.value == change.before.value == 0


def figure_name(quantity: Quantity) -> str:
    """Return a record's figure in words; a profile's by key and coordinates."""
    if quantity.path or any(isinstance(value, str) for _, value in quantity.conditions):
        return name(quantity)
    where = ", ".join(coordinate(x, float(value)) for x, value in quantity.conditions)
    return f"{quantity.key}: {where}" if where else quantity.key


@dataclass(frozen=True)
class _Numbers:
    """Numbers of figures on both sides, and of changed ones. ``unjudged``: none can be judged."""

    matched: int
    worse: int
    better: int
    unjudged: bool

    def none(self, what: str) -> str:
        """Return that no figure ``what`` ("none seems worse"), or that none can be judged."""
        return "none can be judged" if self.unjudged else f"none {what}"


def _verdict(
    found: _Numbers, section_shifts: Sequence[Shift], threshold: float, noisy: bool
) -> Text:
    limit = f"{100 * threshold:.3g} %"
    matched = f"{count(found.matched, 'figure')} on both sides"
    worse = [shift.section for shift in section_shifts if shift.worse(threshold)]
    if noisy:
        seen = found.none("seems worse")
        if found.worse:
            seen = f"{found.worse} seem worse by more than {limit}{_wholes(worse)}"
        elif worse:
            seen = f"none seems worse alone, but {', '.join(worse)} as a whole"
        return Text(f"Cannot decide: disturbed. {matched}; {seen}.", style="bold yellow")
    better = [shift.section for shift in section_shifts if shift.better(threshold)]
    improved = f"; {found.better} better{_wholes(better)}" if found.better or better else ""
    if not found.worse and not worse:
        none = found.none(f"is worse by more than {limit}")
        style = "yellow" if found.unjudged else "green"
        return Text(f"{matched}; {none}{improved}.", style=style)
    text = f"{matched}; {found.worse} worse by more than {limit}{_wholes(worse)}{improved}."
    return Text(text, style="bold red")


def _wholes(sections: Sequence[str]) -> str:
    return f", and as a whole {', '.join(sections)}" if sections else ""


def _undecided(number: int) -> list[RenderableType]:
    """Return a line about figures that decide nothing, if there are any."""
    if not number:
        return []
    have = "has" if number == 1 else "have"
    return [
        Text(
            f"{count(number, 'figure')} of fewer than six repeats {have} no interval and "
            "cannot be judged: measure with --runs 6 or more, a study with more --time",
            style="yellow",
        )
    ]


def _sections(
    section_shifts: Sequence[Shift], threshold: float, seems: str
) -> list[RenderableType]:
    """Return the cost of each section relative to the base; nothing if none has enough figures."""
    if not section_shifts:
        return []
    rows = [
        [
            shift.section,
            str(shift.figures),
            f"{shift.cost:.3f} ×",
            f"{shift.low:.3f}–{shift.high:.3f}",
            _word(shift, threshold, seems),
        ]
        for shift in section_shifts
    ]
    heads = ["Section", "Figures", "Cost, mean", "95 %", ""]
    return [columns(heads, rows, 1), Text("")]


def _word(shift: Shift, threshold: float, seems: str) -> str:
    """``seems``: put before the word where a disturbed side leaves nothing decided."""
    if shift.worse(threshold):
        return f"{seems}worse"
    return f"{seems}better" if shift.better(threshold) else ""


def _table(changes: list[Change], verdicts: dict[int, str], sides: tuple[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("Figure")
    for head in (*sides, "Ratio"):
        table.add_column(Text(head), justify="right", overflow="fold", max_width=20)
    table.add_column("Intervals")
    table.add_column("")
    for change in changes:
        cells = (
            figure_name(change.shared()),
            _value(change.before),
            _value(change.now),
            "from 0" if change.is_from_zero() else f"{change.ratio():.3f} ×",
            _INTERVALS[change.agree()],
            verdicts.get(id(change), ""),
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
