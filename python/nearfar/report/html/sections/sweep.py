"""The cells of a sweep: the result of each, and which failed."""

from __future__ import annotations

from collections.abc import Sequence

from nearfar.comparison.direction import better
from nearfar.records.figures import Origin
from nearfar.records.sweep import SweepCell, SweepFigure, SweepResult, varied_keys
from nearfar.report.charts.drawing import draw
from nearfar.report.charts.rows import Bar, row_chart
from nearfar.report.html.section import Cell, Context, Figure, Section, Table
from nearfar.report.wording import (
    axis_unit,
    count,
    format_interval,
    format_quantity,
    sentence,
)
from nearfar.units import format_time

#: Most columns of figures in a table, and most lines of cells in a picture.
_MAX_COLUMNS = 5
_MAX_BARS = 40
#: Condition of simulations, and head of its column.
_ENGINE = "engine"
#: Parts of a path that name a list and carry no information.
_LISTS = frozenset({"curves", "points", "rows", "sweep"})


#: Name of a figure in all cells of a verb: path, key, and what distinguishes it from others.
Name = tuple[str, str, str]


def section(context: Context) -> Section | None:
    """Return the section, or None if no suite was run."""
    result = context.run.sections.sweep
    if result is None or not result.cells:
        return None
    figures = [figure for verb in result.verbs() if (figure := _figure(result, verb))]
    tables = [cells_table(result, verb) for verb in result.verbs()]
    return Section(
        "sweep",
        result.title or f"Sweep {result.suite}",
        finding(result),
        figures,
        [*tables, *_failures(result)],
        notes(result),
    )


def finding(result: SweepResult) -> str:
    """State how many cells finished, and of which verbs."""
    done = len(result.cells) - len(result.failed())
    summary = f"{done} of {count(result.planned, 'cell')} finished: {', '.join(result.verbs())}."
    failed = len(result.failed())
    noisy = sum(_is_disturbed(cell) for cell in result.cells)
    parts = [summary]
    if failed:
        parts.append(f"{count(failed, 'cell')} failed.")
    if noisy:
        parts.append(f"{count(noisy, 'cell')} disturbed: do not rely on their figures.")
    return " ".join(parts)


def _is_disturbed(cell: SweepCell) -> bool:
    return cell.noise is not None and cell.noise.noisy


def notes(result: SweepResult) -> list[str]:
    """State the source, and where all figures are."""
    source = [f"Source: {result.source}."] if result.source else []
    return [
        *source,
        "The tables show the first figures that all cells of a verb have; results.csv has all, one "
        "row each, and cells/ has each cell's own record.",
    ]


def cells_table(result: SweepResult, verb: str) -> Table:
    """Return one row per cell: its position in the grid, its figures, its engine if nearfar chose
    several, and whether it was disturbed if any was."""
    cells = result.finished(verb)
    keys, shown = varied_keys(cells), common_figures(cells)
    rows = [
        [
            *(Cell(str(cell.varied.get(key, ""))) for key in keys),
            *(_cell(figures[row]) for figures in shown.values()),
        ]
        for row, cell in enumerate(cells)
    ]
    heads = [*keys, *(heading(name) for name in shown)]
    right = frozenset(range(len(keys), len(heads)))
    engines = [_engine(cell) for cell in cells]
    if len(set(engines)) > 1 and _ENGINE not in keys:
        heads.append(_ENGINE)
        for row, engine in zip(rows, engines, strict=True):
            row.append(Cell(engine))
    if any(map(_is_disturbed, cells)):
        heads.append("Verdict")
        for row, cell in zip(rows, cells, strict=True):
            row.append(Cell("disturbed", tone="warn") if _is_disturbed(cell) else Cell("steady"))
    return Table(heads, rows, f"nearfar {verb}", right)


def _engine(cell: SweepCell) -> str:
    """Return what simulated a cell: nearfar can choose another engine for each."""
    found = (figure.conditions.get(_ENGINE) for figure in cell.figures)
    return next((str(engine) for engine in found if engine is not None), "")


def common_figures(cells: Sequence[SweepCell]) -> dict[Name, list[SweepFigure]]:
    """Return the first figures that all cells have, by name.

    Figures that a cell has once precede those of a list, figures with a direction precede others,
    and figures of the result itself precede those of inner objects. Last are figures of inner
    objects that are parts of a total (a figure of the result with the same key), and figures that
    are 0 in all cells.
    """
    if not cells:
        return {}
    tables = [_by_name(cell) for cell in cells]
    common = [name for name in tables[0] if all(name in table for table in tables)]
    totals = {key for path, key, _ in common if "/" not in path}
    last = {name for name in common if "/" in name[0] and name[1] in totals}
    last |= {name for name in common if not any(table[name].value for table in tables)}

    def rank(name: Name) -> tuple[bool, bool, bool, int]:
        path, key, difference = name
        return name in last, bool(difference), better(key) is None, path.count("/")

    common.sort(key=rank)
    return {name: [table[name] for table in tables] for name in common[:_MAX_COLUMNS]}


def _by_name(cell: SweepCell) -> dict[Name, SweepFigure]:
    """Return figures of known origin by path, key, and what distinguishes them in the cell."""
    groups: dict[tuple[str, str], list[SweepFigure]] = {}
    for figure in cell.figures:
        if figure.provenance:
            groups.setdefault((figure.path, figure.key), []).append(figure)
    found: dict[Name, SweepFigure] = {}
    for (path, key), figures in groups.items():
        differing = [
            condition
            for condition in figures[0].conditions
            if len({figure.conditions.get(condition) for figure in figures}) > 1
        ]
        for figure in figures:
            difference = ", ".join(str(figure.conditions.get(each, "–")) for each in differing)
            found[path, key, difference] = figure
    return found


def heading(name: Name) -> str:
    """Return ``copy best bandwidth``: end of the path, key without its unit, conditions."""
    path, words, difference = name
    for unit in ("_bytes_per_s", "_ns", "_J", "_s", "_bytes"):
        words = words.removesuffix(unit)
    inner = [part for part in path.split("/")[1:] if part not in _LISTS]
    said = " ".join([*inner[-1:], words]).replace("_", " ")
    return f"{said}, {difference}" if difference else said


def _cell(figure: SweepFigure) -> Cell:
    interval = format_interval(figure.key, *figure.interval) if figure.interval else ""
    origin = figure.provenance.origin if figure.provenance else None
    return Cell(format_quantity(figure.key, figure.value), interval, origin)


def _failures(result: SweepResult) -> list[Table]:
    rows = [
        [
            Cell(c.command, code=True),
            Cell(c.message, tone="bad"),
            Cell(format_time(c.took_s) if c.took_s else "–"),
        ]
        for c in result.failed()
    ]
    if not rows:
        return []
    return [Table(["Cell", "Why it failed", "After"], rows, "Failed", stacked=True)]


def _figure(result: SweepResult, verb: str) -> Figure | None:
    """Return a picture of the first figure of each cell, one line per cell."""
    cells = result.finished(verb)
    shown = common_figures(cells)
    if not shown or len(cells) < 2:
        return None
    name, figures = next(iter(shown.items()))
    drawn = list(zip(cells, figures, strict=True))[:_MAX_BARS]
    if any(figure.value <= 0 for _, figure in drawn):
        return None  # a linear axis begins at zero, and a logarithmic one cannot show it
    key = drawn[0][1].key
    origins = tuple(dict.fromkeys(f.provenance.origin for _, f in drawn if f.provenance))
    caption = f"{sentence(heading(name))} of nearfar {verb}, by cell."
    values = [figure.value for _, figure in drawn]
    wide = max(values) > 10 * min(values)
    unit, divisor = axis_unit(key, max(values))
    title = heading(name) + (f" ({unit})" if unit else "")
    chart = row_chart([_bar(cell, figure, divisor) for cell, figure in drawn], title, log=wide)
    return draw(caption, chart, height=26 * len(drawn), origins=origins)


def _bar(cell: SweepCell, figure: SweepFigure, divisor: float) -> Bar:
    low, high = figure.interval or (figure.value, figure.value)
    origin = figure.provenance.origin if figure.provenance else None
    label = ", ".join(str(value) for value in cell.varied.values()) or cell.verb
    first = str(next(iter(cell.varied.values()), ""))
    return Bar(
        label,
        first,
        figure.value / divisor,
        low / divisor,
        high / divisor,
        format_quantity(figure.key, figure.value),
        hollow=origin is not Origin.MEASURED,
    )
