"""A simulated program: time and energy of both memories, from a trace, a stream or counts."""

from __future__ import annotations

from nearfar.records.figures import FigureModel, Origin
from nearfar.records.simulation import CountsSimulation, SimulatedTier, Simulation
from nearfar.report.charts.series import TimeSeries, rates_chart
from nearfar.report.html.section import Cell, Context, Figure, Section, Table
from nearfar.report.simulation_words import bound_words, controller_words, energy_words
from nearfar.report.wording import format_quantity

#: With fewer, a line over time says nothing.
_FEWEST_INTERVALS = 8
#: Units of the axis of time, each with its number per second.
_UNITS = (("s", 1.0), ("ms", 1e3), ("µs", 1e6))
_SIMULATED = (
    "reads",
    "writes",
    "device_reads",
    "device_writes",
    "row_hit_share",
    "read_latency_ns",
    "p50_latency_ns",
    "p99_latency_ns",
    "p999_latency_ns",
    "largest_latency_ns",
    "active_power_down_s",
    "power_down_s",
    "self_refresh_s",
    "energy_J",
    "most_line_writes",
    "lifetime_s",
    "levelled_lifetime_s",
)
_COUNTED = (
    "reads",
    "writes",
    "read_time_s",
    "write_time_s",
    "read_energy_J",
    "write_energy_J",
    "standby_energy_J",
    "refresh_energy_J",
)


def section(context: Context) -> Section | None:
    """Return the section, or None if nothing was simulated."""
    found = context.run.sections
    if found.simulation is not None:
        return _section(found.simulation, _finding(found.simulation), _SIMULATED)
    if found.simulated_counts is not None:
        return _section(found.simulated_counts, "A program given by its counts.", _COUNTED)
    return None


def _finding(result: Simulation) -> str:
    settings = (
        f"{result.source}: {result.requests:,} requests, {result.placement}; "
        f"{format_quantity('time_s', result.time_s)} at "
        f"{format_quantity('bandwidth_bytes_per_s', result.bandwidth_bytes_per_s)} (simulated). "
        f"Engine {result.engine}, {controller_words(result)}, writes {result.write_policy}, core "
        f"{result.core}."
    )
    return " ".join(filter(None, (settings, bound_words(result))))


def _section(result: Simulation | CountsSimulation, finding: str, keys: tuple[str, ...]) -> Section:
    totals = [_row(key, result) for key in ("time_s", "cpu_time_s", "energy_J")]
    if isinstance(result, Simulation):
        totals[-1][0] = Cell(f"energy of {energy_words(result)}")
    near, far = result.tiers.near, result.tiers.far
    memories = [_row(key, near, far) for key in keys if _has(key, near, far)]
    tables = [
        Table(["The program", ""], totals, "Time and energy", frozenset({1})),
        Table(
            ["", f"near: {near.device}", f"far: {far.device}"],
            memories,
            "Both memories",
            frozenset({1, 2}),
        ),
    ]
    tables += [
        _channels(tier) for tier in (near, far) if isinstance(tier, SimulatedTier) and tier.banks
    ]
    figures = _traffic(result) if isinstance(result, Simulation) else []
    return Section(
        "simulation", "Simulation", finding, figures, tables, [*result.warnings, *result.limits]
    )


def _channels(tier: SimulatedTier) -> Table:
    """Work by channel, and how evenly it is spread over the channel's banks."""
    rows = []
    for channel in sorted({bank.channel for bank in tier.banks}):
        banks = [bank for bank in tier.banks if bank.channel == channel]
        accesses = [bank.reads + bank.writes for bank in banks]
        total = max(sum(accesses), 1)
        rows.append(
            [
                Cell(f"{channel}"),
                Cell(f"{sum(accesses):,}", "", Origin.SIMULATED),
                Cell(f"{sum(b.row_hits for b in banks) / total:.1%}", "", Origin.SIMULATED),
                Cell(f"{sum(b.activates for b in banks):,}", "", Origin.SIMULATED),
                Cell(f"{max(accesses) / total:.1%} of {len(banks)}", "", Origin.SIMULATED),
            ]
        )
    heads = ["Channel", "Accesses", "Row hits", "Activates", "Busiest bank"]
    return Table(heads, rows, f"Channels of {tier.device}", frozenset(range(1, 5)), folded=True)


def _traffic(result: Simulation) -> list[Figure]:
    """Bandwidth of each memory over simulated time; none for runs of a few intervals."""
    from nearfar.report.charts.drawing import draw

    tiers = [("near", result.tiers.near), ("far", result.tiers.far)]
    unit, scale = next((u for u in _UNITS if result.time_s * u[1] >= 1), _UNITS[-1])
    lines = [
        TimeSeries(
            name,
            [i * (tier.traffic_interval_s or 0) * scale for i in range(len(traffic))],
            traffic,
        )
        for name, tier in tiers
        for traffic in [[rate / 1e9 for rate in tier.traffic_bytes_per_s]]
        if len(traffic) >= _FEWEST_INTERVALS
    ]
    if not lines:
        return []
    chart = rates_chart(lines, f"simulated time ({unit})", "bandwidth (GB/s)")
    caption = "Bandwidth of the program's accesses over time (simulated)."
    return [draw(caption, chart, height=240, narrow_height=200, origins=(Origin.SIMULATED,))]


def _has(key: str, *memories: FigureModel) -> bool:
    return any(getattr(memory, key) is not None for memory in memories)


def _row(key: str, *memories: FigureModel) -> list[Cell]:
    name = key.removesuffix("_ns").removesuffix("_J").removesuffix("_s").replace("_", " ")
    values = [getattr(memory, key) for memory in memories]
    return [
        Cell(f"energy, {name.removesuffix(' energy')}" if name.endswith(" energy") else name),
        *(
            Cell("–") if value is None else Cell(format_quantity(key, value), "", Origin.SIMULATED)
            for value in values
        ),
    ]
