"""Predictions as tables: the figures, their terms, and what limits them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.model.contention import ContentionModel, Side
from nearfar.model.counter_fits import CounterFit, CounterFits
from nearfar.model.map_work import MapPrediction
from nearfar.model.results import (
    ContentionPrediction,
    InterleavePrediction,
    PipelinePrediction,
    Prediction,
    SplitPrediction,
    Term,
)
from nearfar.model.structure_results import TITLES, StructurePrediction
from nearfar.records.figures import Figures, Origin
from nearfar.report.terminal.layout import block, columns, figure
from nearfar.report.wording import say
from nearfar.units import format_bandwidth, format_size, format_time


def figures(title: str, result: Figures) -> RenderableType:
    """Return an answer without its own model: one row per figure."""
    rows = [[key, figure(result, key)] for key in result.provenance]
    table = columns(["Figure", "Value"], rows, 1)
    return block(title, result.provenance[rows[0][0]].note, [Origin.MODELLED], table, result.limits)


def contention_model(model: ContentionModel) -> RenderableType:
    """Return the fitted laws and their errors on rows left out."""
    rows = [_law("near", "d", model.near), _law("far", "v", model.far)]
    table = columns(
        ["Side", "A thread's bytes/s", "One left out, mean", "worst", "Two left out", "Queueing"],
        rows,
        2,
    )
    finding = f"{len(model.rows)} rows; full occupancy is {model.full_threads} threads."
    return block(
        "Competition",
        finding,
        [Origin.MODELLED],
        table,
        ["Errors are on rows excluded from the fit; its form was chosen again without them."],
    )


def _law(name: str, variable: str, side: Side) -> list[str]:
    factor, *rest = side.coefficients
    power = f"·{variable}^{{}}"
    shapes = {
        "power": power,
        "quarter": f"·e^({{}}·{variable}^¼)",
        "root": f"·e^({{}}·√{variable})",
        "exponential": f"·e^({{}}·{variable})",
        "bent": f"{power}·e^({{}}·{variable})",
    }
    law = f"e^{factor:.3f}" + shapes[side.form].format(*(f"{c:.4g}" for c in rest))
    two = "–" if side.leave_two_out_mean is None else f"{side.leave_two_out_mean:.1%}"
    return [
        name,
        law,
        f"{side.leave_one_out_mean:.1%}",
        f"{side.leave_one_out_worst:.1%}",
        two,
        f"{side.queueing:.2f} ({side.queueing_low:.2f}–{side.queueing_high:.2f})",
    ]


def contention(result: ContentionPrediction) -> RenderableType:
    """Return both bandwidths."""
    rows = [
        ["near", str(result.near_threads), figure(result, "near_bandwidth_bytes_per_s")],
        ["far", str(result.far_threads), figure(result, "far_bandwidth_bytes_per_s")],
    ]
    return _shown(
        "Contention",
        "Both sides copy concurrently.",
        result,
        columns(["Side", "Threads", "Bandwidth"], rows, 1),
    )


def split(result: SplitPrediction) -> RenderableType:
    """Return the three times of a sweep."""
    rows = [[name, figure(result, f"{name}_time_s")] for name in ("near", "far", "total")]
    finding = (
        f"{result.far_rows} rows on the far side; {result.near_threads} near and "
        f"{result.far_threads} far threads ({result.version}, model {result.model})."
    )
    return _shown("Split", finding, result, columns(["A sweep", "Time"], rows, 1))


def interleave(result: InterleavePrediction) -> RenderableType:
    """Return the near fraction of each site, simpler placements, and the load of both memories."""
    rows = [
        [site.name, format_size(site.size_bytes), f"{site.near_share * result.steps:g} of 8"]
        for site in result.sites
    ]
    heads = ["Memory", "Bandwidth", "Of its peak", "Reads", "Latency", "Idle"]
    found = "No placement in eighths is faster." if result.exact else "A faster one may exist."
    bound = "≤: at the end of a curve that is not saturated, where bandwidth may be higher"
    return block(
        "Interleaving",
        found,
        [Origin.MODELLED],
        Group(
            columns(["Site", "Size", "Near"], rows, 1),
            columns(["Placement", "Time"], _placement_times(result), 1),
            columns(heads, _tier_loads(result), 1),
        ),
        [*([bound] if result.upper_bounds else []), *result.limits],
    )


def _placement_times(result: InterleavePrediction) -> list[list[str]]:
    return [
        [name, ("≤ " if key in result.upper_bounds else "") + format_time(getattr(result, key))]
        for name, key in (
            ("sites in eighths", "time_s"),
            ("sites near or far as a whole", "whole_sites_time_s"),
            (f"all sites {result.uniform_near_share or 0:.0%} near", "uniform_time_s"),
            ("all near", "all_near_time_s"),
            ("all far", "all_far_time_s"),
        )
        if getattr(result, key) is not None
    ]


def _tier_loads(result: InterleavePrediction) -> list[list[str]]:
    return [
        [
            f"{side}: {tier.name}",
            format_bandwidth(tier.bandwidth_bytes_per_s),
            f"{tier.utilization:.0%}",
            f"{tier.read_share:.0%}",
            format_time(tier.latency_ns / 1e9),
            format_time(tier.idle_latency_ns / 1e9),
        ]
        for side, tier in (("near", result.near), ("far", result.far))
    ]


def pipeline(result: PipelinePrediction) -> RenderableType:
    """Return all splits of the threads."""
    keys = ("generate_time_s", "transfer_time_s", "analyse_time_s")
    rows = [
        [
            f"{s.near_threads} + {s.far_threads}",
            *(format_time(getattr(s, key)) for key in keys),
            figure(s, "total_time_s"),
            f"{s.regret:.1%}",
            s.binds,
        ]
        for s in result.splits
    ]
    heads = ["Near + far", "Generate", "Transfer", "Analyze", "Total", "Regret", "Binds"]
    finding = f"Best with {result.best_near_threads} near threads."
    return _shown("Pipeline", finding, result, columns(heads, rows, 1))


def counter_fits(result: CounterFits) -> RenderableType:
    """Return each counter's function of n, its coefficients, and its error on rows left out."""
    rows = [
        [
            fit.name,
            fit.form,
            fit.formula,
            _range(fit, "a"),
            _range(fit, "b"),
            f"{fit.leave_one_out_error:.1%}",
        ]
        for fit in result.fits
    ]
    heads = ["Column", "Form", "Of n operations", "a", "b", "Left out"]
    notes = ["a and b with 95 % intervals; the error is the root mean square over the mean."]
    finding = f"{result.rows} rows; the form is the best on rows left out one at a time."
    return block("Counters", finding, [Origin.MODELLED], columns(heads, rows, 3), notes)


def _range(fit: CounterFit, key: str) -> str:
    low, high = fit.intervals[key]
    return f"{low:.4g} – {high:.4g}"


def map_work(result: MapPrediction) -> RenderableType:
    """Return the time of all operations on a map, and of one."""
    verb = {"get": "Gets", "insert": "Insertions", "remove": "Removals"}[result.operation]
    finding = (
        f"{result.operations:,} operations on values of {format_size(result.value_bytes)}, "
        f"model {result.model}."
    )
    low, high = result.intervals["time_s"]
    one = [format_time(seconds / result.operations) for seconds in (result.time_s, low, high)]
    rows = [["all", figure(result, "time_s")], ["one", f"{one[0]}  ({one[1]} – {one[2]})"]]
    return _shown(
        f"{verb} on a hash map", finding, result, columns(["Operations", "Time"], rows, 1)
    )


def structure(result: StructurePrediction) -> RenderableType:
    """Return the time of an operation in far memory, and both readings of a slowdown."""
    against = " and ".join(
        f"{reading.slowdown:.2f} × {TITLES[reading.baseline].partition(',')[0]}"
        for reading in result.readings
    )
    finding = (
        f"With {result.size_entries:,} entries in {result.far} on "
        f"{'this machine' if result.host == 'this' else result.host}, and "
        f"{result.update_share:.0%} updates, an operation takes {say(result, 'time_s')}: {against}."
    )
    rows = [["in far memory", figure(result, "time_s"), "", ""]]
    for reading in result.readings:
        published = reading.published_slowdown
        rows.append(
            [
                TITLES[reading.baseline],
                figure(reading, "near_time_s"),
                figure(reading, "slowdown"),
                "" if published is None else f"{published:g} ×",
            ]
        )
    heads = ["An operation", "Time", "Slowdown against it", "Published"]
    if not any(row[-1] for row in rows):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    why = [f"Against {TITLES[r.baseline]}: {r.reason}." for r in result.readings if r.reason]
    return _shown(f"Structure {result.structure}", finding, result, columns(heads, rows, 1), why)


def _shown(
    title: str, finding: str, result: Prediction, table: RenderableType, why: Sequence[str] = ()
) -> RenderableType:
    terms = [
        [term.name, _value(term), "decides" if term.binds else "", term.note]
        for term in result.terms
    ]
    tables = Group(table, Text(""), columns(["Term", "Value", "", ""], terms, 1))
    notes = [*why, f"Calibration level {result.calibration}.", *result.limits]
    return block(title, finding, [Origin.MODELLED], tables, notes)


def _value(term: Term) -> str:
    if term.unit == "bytes/s":
        return format_bandwidth(term.value)
    if term.unit == "s":
        return format_time(round(term.value, 12))  # below a picosecond, a model says nothing
    return f"{term.value:.3f}" if term.unit == "ratio" else f"{term.value:g}"
