"""A set of integers: what durability costs, beside the published means."""

from __future__ import annotations

from nearfar.records.pools import IntsetResult
from nearfar.records.shape import Origin
from nearfar.report.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.wording import format_quantity, origin_mark, origin_of, origins, say

_STRUCTURES = {"list": "sorted list", "hash": "hash set", "skip_list": "skip list"}
MEDIA = {
    "pmem": "in its pool", "unflushed": "without flushes and fences", "dram": "volatile twin",
    "pmdk": "by libpmemobj's transactions",
}  # fmt: skip
COLUMNS = {
    "ops_per_s": "Operations/s", "fences_per_op": "Fences an operation",
    "lines_per_op": "Lines an operation",
}  # fmt: skip
#: Mean slowdowns against DRAM that the WSCAD 2022 paper reports: on Optane, on a SATA SSD.
PUBLISHED = {"list": (3.2, 47.0), "hash": (11.2, 274.8), "skip_list": (4.7, 167.4)}
SOURCE = (
    "Mean slowdowns against DRAM on Optane and on an SSD as published in the WSCAD 2022 paper on "
    "PMDK; whether its DRAM baseline was malloc or PMDK on DRAM is not said there."
)


def section(context: Context) -> Section | None:
    """The section, or None where no set was run."""
    result = context.run.sections.intset
    if result is None:
        return None
    figures = [_figure(result)] if result.slowdown is not None else []
    return Section(
        "intset", "Set of integers", finding(result), figures, _tables(result), notes(result)
    )


def finding(result: IntsetResult) -> str:
    """Throughput and the slowdowns, each with its origin."""
    text = (
        f"A {_STRUCTURES[result.structure]} of {result.entries:,} entries ran at "
        f"{say(result, 'ops_per_s')} on {result.tier}, "
        f"{result.update_share:.0%} of operations updates"
    )
    if result.slowdown is not None:
        text += f"; its volatile twin is {_times(result, 'slowdown')} as fast"
    if result.unflushed_slowdown is not None:
        text += f", the same code without flushes {_times(result, 'unflushed_slowdown')}"
    if result.pmdk_ratio is not None:
        text += f"; it is {_times(result, 'pmdk_ratio')} as fast as a version on libpmemobj"
    return f"{text}."


def _times(result: IntsetResult, key: str) -> str:
    return f"{getattr(result, key):.2f} times{origin_mark(result, key)}"


def _tables(result: IntsetResult) -> list[Table]:
    rows = [
        [Cell(MEDIA[one.medium]), *(figure_cell(one, key) for key in COLUMNS)]
        for one in result.series
    ]
    heads = ["Medium", *COLUMNS.values()]
    tables = [Table(heads, rows, "Throughput by medium", frozenset({1, 2, 3}))]
    if result.slowdown is not None:
        tables.append(_slowdowns(result))
    return tables


def _slowdowns(result: IntsetResult) -> Table:
    optane, ssd = PUBLISHED[result.structure]
    rows = [
        [Cell(f"this machine, {_label(result)}"), figure_cell(result, "slowdown")],
        [Cell("Optane, published mean"), Cell(f"{optane:g}", origin=Origin.CLAIMED)],
        [Cell("SATA SSD, published mean"), Cell(f"{ssd:g}", origin=Origin.CLAIMED)],
    ]
    return Table(
        ["Slowdown against DRAM", "Times"], rows, "Beside the published means", frozenset({1})
    )


def _label(result: IntsetResult) -> str:
    """The tier; DRAM in the stead of a device is never without that word."""
    emulated = origin_of(result, "slowdown") is Origin.EMULATED
    return f"{result.tier} (emulated: DRAM)" if emulated else result.tier


def _figure(result: IntsetResult) -> Figure:
    from nearfar.report.charts import Bar, row_chart
    from nearfar.report.drawing import draw

    optane, ssd = PUBLISHED[result.structure]
    own = format_quantity("ratio", result.slowdown or 0.0)
    bars = [Bar(_label(result), "here", *result.estimate("slowdown"), own)]
    if result.unflushed_slowdown is not None:
        key = "unflushed_slowdown"
        text = format_quantity("ratio", result.unflushed_slowdown)
        bars.append(Bar("of it flushes and fences", "here", *result.estimate(key), text))
    bars += [
        Bar(f"{name}, published", "published", value, value, value, f"{value:g} ×", hollow=True)
        for name, value in (("Optane", optane), ("SATA SSD", ssd))
    ]
    chart = row_chart(bars, "slowdown against DRAM, logarithmic", log=True)
    found = (*origins([(result, "slowdown")]), Origin.CLAIMED)
    return draw("What durability costs.", chart, height=26 * len(bars), origins=found)


def notes(result: IntsetResult) -> list[str]:
    """How it was done, and what the ratios are not."""
    samples = result.provenance["ops_per_s"].samples
    told = [
        f"Means of {samples} runs of {format_quantity('run_time_s', result.run_time_s)} with 95 % "
        "bootstrap intervals of 10,000 resamples; media ran in turns.",
        "Keys come from twice as many as there are entries: half of updates find nothing to do.",
    ]
    if result.slowdown is not None:
        told.append(SOURCE)
        if origin_of(result, "slowdown") is Origin.EMULATED:
            told.append(
                "DRAM stood in for persistent memory, with all flushes and fences: these ratios "
                "are no device's."
            )
    return told
