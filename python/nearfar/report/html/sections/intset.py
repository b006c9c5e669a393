"""A set of integers: its persistence cost, next to the published means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.model.slowdowns import WSCAD
from nearfar.records.figures import Origin
from nearfar.records.persistent_structures import IntsetResult
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.wording import format_quantity, origin_mark, origin_of, origins, say

if TYPE_CHECKING:
    from nearfar.report.charts.rows import Bar

_STRUCTURES = {"list": "sorted list", "hash": "hash set", "skip_list": "skip list"}
MEDIA = {
    "pmem": "in its pool",
    "unflushed": "without flushes and fences",
    "dram": "volatile counterpart",
    "pmdk": "with libpmemobj's transactions",
}
COLUMNS = {"ops_per_s": "Operations", "fences_per_op": "Fences", "lines_per_op": "Lines"}
SOURCE = (
    "Mean slowdowns against DRAM on Optane and on an SSD as published in the WSCAD 2022 paper on "
    "PMDK, which does not state whether its DRAM baseline was malloc or PMDK on DRAM."
)


def section(context: Context) -> Section | None:
    """Return the section, or None if no set was run."""
    result = context.run.sections.intset
    if result is None:
        return None
    figures = [_figure(result)] if result.slowdown is not None else []
    return Section(
        "intset", "Set of integers", finding(result), figures, _tables(result), notes(result)
    )


def structure_name(structure: str) -> str:
    """Return the name in words; of an added structure, its own name."""
    return _STRUCTURES.get(structure, structure)


def finding(result: IntsetResult) -> str:
    """State throughput and slowdowns, each with its origin."""
    return " ".join(_finding(one) for one in together(result))


def _finding(result: IntsetResult) -> str:
    text = (
        f"A {structure_name(result.structure)} of {result.entries:,} entries ran at "
        f"{say(result, 'ops_per_s')} on {result.tier}, "
        f"{result.update_share:.0%} of operations updates"
    )
    if result.slowdown is not None:
        text += f"; its volatile counterpart is {_times(result, 'slowdown')} as fast"
    if result.unflushed_slowdown is not None:
        text += f", the same code without flushes {_times(result, 'unflushed_slowdown')}"
    if result.pmdk_ratio is not None:
        text += f"; it is {_times(result, 'pmdk_ratio')} as fast as a version on libpmemobj"
    return f"{text}."


def _times(result: IntsetResult, key: str) -> str:
    return f"{getattr(result, key):.2f} times{origin_mark(result, key)}"


def together(result: IntsetResult) -> list[IntsetResult]:
    """Return all structures of a record."""
    return [result, *result.others]


def _tables(result: IntsetResult) -> list[Table]:
    rows = [
        [
            Cell(structure_name(r.structure)),
            Cell(MEDIA[one.medium]),
            *(figure_cell(one, key) for key in COLUMNS),
        ]
        for r in together(result)
        for one in r.series
    ]
    heads = ["Structure", "Medium", *COLUMNS.values()]
    tables = [Table(heads, rows, "Throughput by medium", frozenset({2, 3, 4}))]
    if result.slowdown is not None:
        tables.append(_slowdowns(result))
    return tables


def _slowdowns(result: IntsetResult) -> Table:
    rows = []
    for one in together(result):
        published = WSCAD.get(one.structure)
        claims = [Cell(f"{value:g} ×", origin=Origin.CLAIMED) for value in published or ()]
        rows.append(
            [
                Cell(structure_name(one.structure)),
                figure_cell(one, "slowdown"),
                figure_cell(one, "unflushed_slowdown"),
                *(claims or [Cell("–"), Cell("–")]),
            ]
        )
    heads = ["Structure", _label(result), "without flushes", "Optane", "SATA SSD"]
    caption = (
        "Slowdown against DRAM and against the same code without flushes, and the published means"
    )
    return Table(heads, rows, caption, frozenset({1, 2, 3, 4}))


def _label(result: IntsetResult) -> str:
    """Return the tier; DRAM that emulates a device is always marked."""
    emulated = origin_of(result, "slowdown") is Origin.EMULATED
    return f"{result.tier} (emulated)" if emulated else result.tier


def _figure(result: IntsetResult) -> Figure:
    from nearfar.report.charts.drawing import draw
    from nearfar.report.charts.rows import row_chart

    bars = [bar for one in together(result) for bar in _bars(one)]
    chart = row_chart(bars, "slowdown against DRAM, logarithmic", log=True)
    found = (*origins([(result, "slowdown")]), Origin.CLAIMED)
    return draw("Persistence cost.", chart, height=26 * len(bars), origins=found)


def _bars(result: IntsetResult) -> list[Bar]:
    from nearfar.report.charts.rows import Bar

    name, published = structure_name(result.structure), WSCAD.get(result.structure)
    own = format_quantity("ratio", result.slowdown or 0.0)
    return [
        Bar(f"{name}, {_label(result)}", "here", *result.estimate("slowdown"), own),
        *(
            Bar(
                f"{name}, {device}, published",
                "published",
                value,
                value,
                value,
                f"{value:g} ×",
                hollow=True,
            )
            for device, value in zip(("Optane", "SATA SSD"), published or (), strict=False)
        ),
    ]


def notes(result: IntsetResult) -> list[str]:
    """State how the set was measured, and the limits of the ratios."""
    samples = result.provenance["ops_per_s"].samples
    lines = [
        f"Means of {samples} runs of {format_quantity('run_time_s', result.run_time_s)} with 95 % "
        "bootstrap intervals of 10,000 resamples; media alternated.",
        "Keys come from twice the number of entries: half of the updates change nothing.",
    ]
    if result.slowdown is not None:
        lines.append(SOURCE)
        if result.tier.startswith("numa:"):
            lines.append(f"The volatile counterpart was on {result.tier} too, not in DRAM.")
        if origin_of(result, "slowdown") is Origin.EMULATED:
            lines.append(
                "DRAM emulated persistent memory, with all flushes and fences: these ratios "
                "do not describe a device."
            )
    return lines
