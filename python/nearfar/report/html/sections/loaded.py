"""Latency under load: the bandwidth-latency curve of each mix."""

from __future__ import annotations

from collections.abc import Sequence

from nearfar.profiles.loaded_curves import Loaded, open_ends
from nearfar.records.depth import LoadedPoint, LoadedResult
from nearfar.report.charts.lines import Axis, Line, Spot, line_chart
from nearfar.report.charts.palette import series_color
from nearfar.report.html import headline
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.html.sections._published import loaded_points, loaded_sources
from nearfar.report.wording import (
    count,
    format_quantity,
    line_kind,
    mix_name,
    origins,
    say,
)

_LATENCY, _RATE = "latency_ns", "bandwidth_bytes_per_s"


def section(context: Context) -> Section | None:
    """Return the section, or None if latency under load was not measured."""
    result = context.run.sections.loaded
    if result is None or not result.points:
        return None
    return Section(
        "loaded",
        "Latency under load",
        finding(result),
        [_figure(result)],
        [_published(), _table(result)],
        [*notes(result), *loaded_sources()],
    )


def finding(result: LoadedResult) -> str:
    """State the idle latency, and the latency at the highest bandwidth of each mix."""
    idle = headline.idle(result)
    ends = [
        f"{say(top, _LATENCY)} at {say(top, _RATE)} ({mix_name(*mix)})"
        for mix, points in by_mix(result).items()
        for top in [headline.max_loaded(points)]
    ]
    if idle is None:
        return f"Under the most load, a load on {result.tier} takes {', '.join(ends)}."
    return (
        f"A load on {result.tier} takes {say(idle, _LATENCY)} without traffic; under the "
        f"most load, {', '.join(ends)}."
    )


def by_mix(result: LoadedResult) -> dict[tuple[int, int], list[LoadedPoint]]:
    """Return points by reads and writes of the traffic, lowest offered load first."""
    mixes: dict[tuple[int, int], list[LoadedPoint]] = {}
    for point in sorted(result.points, key=offered):
        mixes.setdefault((point.reads, point.writes), []).append(point)
    return mixes


def offered(point: LoadedPoint) -> float:
    """Return the offered bandwidth of the traffic; infinite if it was not paced."""
    return float("inf") if point.offered_bytes_per_s is None else point.offered_bytes_per_s


def offered_text(point: LoadedPoint) -> str:
    """Return the offered load in words."""
    if point.offered_bytes_per_s is None:
        return "unlimited"
    if point.offered_bytes_per_s == 0:
        return "none"
    return format_quantity("offered_bytes_per_s", point.offered_bytes_per_s)


def _figure(result: LoadedResult) -> Figure:
    from nearfar.report.charts.drawing import draw

    lines = [
        Line(mix_name(*mix), series_color(i), _spots(points), line_kind(points, _LATENCY))
        for i, (mix, points) in enumerate(by_mix(result).items())
    ]
    chart = line_chart(lines, Axis("achieved bandwidth (GB/s)"), Axis("latency of a load (ns)"))
    caption = (
        "Median latency of dependent loads over the bandwidth achieved concurrently, by the mix of "
        "the traffic; bars are 95 % intervals of the latency."
    )
    if any(line.kind == "emulated" for line in lines):
        caption += " Dashed: emulated, not measured on the memory itself."
    found = origins((p, _LATENCY) for p in result.points)
    return draw(caption, chart, height=300, narrow_height=240, origins=found)


def _spots(points: Sequence[LoadedPoint]) -> list[Spot]:
    return [Spot(p.bandwidth_bytes_per_s / 1e9, *p.estimate(_LATENCY)) for p in points]


def _published() -> Table:
    """Return other machines' curves as a table: two points each, beyond a small machine's range."""
    rows = [
        [
            Cell(name),
            Cell(_share_name(share)),
            Cell("none" if rate == 0 else format_quantity(_RATE, rate)),
            Cell(format_quantity(_LATENCY, latency)),
        ]
        for name, share, rate, latency in loaded_points()
    ]
    return Table(
        ["Profile", "Traffic", "Load", "Latency"],
        rows,
        "Published values for whole sockets, not measured here",
        frozenset({2, 3}),
        folded=True,
    )


def _share_name(share: float) -> str:
    return {1.0: mix_name(1, 0), 0.5: mix_name(1, 1)}.get(share, f"{share:.0%} reads")


def _table(result: LoadedResult) -> Table:
    rows = [
        [
            Cell(mix_name(*mix)),
            Cell(offered_text(p)),
            figure_cell(p, _RATE),
            figure_cell(p, _LATENCY),
        ]
        for mix, points in by_mix(result).items()
        for p in points
    ]
    return Table(
        ["Traffic", "Offered", "Achieved", "Latency"],
        rows,
        "Latency by offered load",
        frozenset({1, 2, 3}),
        folded=True,
    )


def notes(result: LoadedResult) -> list[str]:
    """State which CPUs measure and generate traffic, and what counts as bandwidth."""
    curves: dict[float, list[Loaded]] = {}
    for point in result.points:
        share = point.reads / (point.reads + point.writes)
        curves.setdefault(share, []).append(Loaded(point.bandwidth_bytes_per_s, point.latency_ns))
    few = open_ends(curves)
    open_note = (
        f"The traffic of these CPUs did not use all of the memory's bandwidth ({few}): what "
        "latency is beyond the end of a curve is not known."
    )
    return [
        *([open_note] if few else []),
        f"CPU {result.chaser_cpu} measures latency, one load at a time; concurrent paced "
        f"traffic comes from {count(len(result.traffic_cpus), 'other')} "
        f"({', '.join(map(str, result.traffic_cpus))}). Achieved bandwidth is the sum of "
        "the traffic and the loads that are timed; offered bandwidth is the target of the traffic.",
    ]
