"""The verdict on each figure."""

from __future__ import annotations

import re

from nearfar.records.noise import FigureVerdict, Reliability, SeriesVerdict
from nearfar.report.html.section import Cell, Context, Section, Table
from nearfar.report.wording import count, sentence

#: A number and, if it is a size, its unit.
_NUMBERS = re.compile(r"(\d+(?:\.\d+)?)(?: (KiB|MiB|GiB))?")
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

_TONES = {Reliability.STEADY: "good", Reliability.DISTURBED: "warn", Reliability.UNUSABLE: "bad"}


def section(context: Context) -> Section | None:
    """Return the section, or None if the record has no verdict on its figures."""
    noise = context.run.noise
    if noise is None or not noise.judged:
        return None
    return Section(
        "reliability",
        "How far each figure can be relied on",
        finding(noise.judged),
        tables=[_table(series) for series in noise.judged if series.figures],
        notes=[
            "Disturbed: other processes or the hypervisor used the CPUs, threads were preempted, "
            "or repeats spread by over 25 %. Unusable: threads ran less than 70 % of their time, "
            "or repeats spread by over 100 %.",
            "At the edge of a cache the physical pages decide between hit and miss. Repeats spread "
            "there on an idle machine, too.",
        ],
    )


def finding(judged: list[SeriesVerdict]) -> str:
    """State how many figures have each verdict, and how many epochs were repeated."""
    figures = [figure for series in judged for figure in series.figures]
    numbers = [(v, sum(f.verdict is v for f in figures)) for v in Reliability]
    parts = ", ".join(f"{number} {verdict.value}" for verdict, number in numbers if number)
    whole = "; ".join(f"{series.series}: {series.verdict.value}" for series in judged)
    text = f"{count(len(figures), 'figure')}: {parts}." if figures else f"{sentence(whole)}."
    replaced = sum(series.set_aside for series in judged)
    if replaced:
        text += f" {count(replaced, 'disturbed epoch')} did not count: calm ones replaced them."
    return text


def _table(series: SeriesVerdict) -> Table:
    open_ones = [f for f in series.figures if f.verdict is not Reliability.STEADY]
    caption = f"{series.series}: {series.verdict.value}"
    if open_ones:
        caption += f", {len(open_ones)} of {count(len(series.figures), 'figure')} not steady"
    return Table(
        ["Figure", "Verdict", "Spread", "Reason"],
        [_row(figure) for figure in sorted(series.figures, key=_in_order)],
        caption,
        frozenset({2}),
        folded=True,
    )


def _in_order(figure: FigureVerdict) -> list[tuple[float, str]]:
    """Sort key: sizes and other numbers by value. Figures are recorded in random order."""
    words = _NUMBERS.split(figure.figure)
    sizes = [float(words[i]) * _UNITS.get(words[i + 1] or "", 1) for i in range(1, len(words), 3)]
    return list(zip([*sizes, 0.0], words[::3], strict=True))


def _row(figure: FigureVerdict) -> list[Cell]:
    return [
        Cell(figure.figure),
        Cell(figure.verdict.value, tone=_TONES[figure.verdict]),
        Cell("–" if figure.spread is None else f"{figure.spread:.0%}"),
        Cell(figure.reason),
    ]
