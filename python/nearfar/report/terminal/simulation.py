"""Simulations as tables: distribution of time and energy."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.records.figures import Origin
from nearfar.records.simulation import CountsModeTier, CountsSimulation, LoadCurve, Simulation
from nearfar.report.simulation_words import (
    bound_words,
    controller_words,
    energy_words,
    memory_wait_s,
)
from nearfar.report.terminal.layout import block, columns
from nearfar.report.wording import format_quantity
from nearfar.units import format_energy, format_time

_PARTS = (
    "read_time_s",
    "write_time_s",
    "read_energy_J",
    "write_energy_J",
    "standby_energy_J",
    "refresh_energy_J",
)


def counts(result: CountsSimulation) -> RenderableType:
    """Return totals, then each tier's part."""
    totals = [
        ["time", format_time(result.time_s)],
        ["  CPU", format_time(result.cpu_time_s)],
        ["  memory", format_time(result.memory_time_s)],
        ["energy of both memories", format_energy(result.energy_J)],
    ]
    near, far = result.tiers.near, result.tiers.far
    parts = [
        ["device", near.device, far.device],
        *(
            [key, f"{getattr(near, key):,}", f"{getattr(far, key):,}"]
            for key in ("reads", "writes")
        ),
        *([_named(key), _cell(near, key), _cell(far, key)] for key in _PARTS),
    ]
    finding = (
        f"{near.reads + near.writes + far.reads + far.writes:,} accesses of 64 B; rows "
        f"{result.page_policy}, writes {result.write_policy}."
    )
    tables = Group(
        columns(["The program", ""], totals, 1),
        Text(""),
        columns(["A tier", "near", "far"], parts, 1),
    )
    return block("Counts", finding, [Origin.SIMULATED], tables, result.limits)


def _named(key: str) -> str:
    return key.rpartition("_")[0].replace("_", " ")


def _cell(tier: CountsModeTier, key: str) -> str:
    return format_quantity(key, getattr(tier, key))


_TIER_ROWS = (
    "reads",
    "writes",
    "device_reads",
    "device_writes",
    "row_hit_share",
    "read_latency_ns",
    "p50_latency_ns",
    "p99_latency_ns",
    "largest_latency_ns",
    "active_power_down_s",
    "power_down_s",
    "self_refresh_s",
    "energy_J",
    "most_line_writes",
    "lifetime_s",
    "levelled_lifetime_s",
)
_ENERGIES = ("activate_J", "array_write_J", "read_J", "write_J", "refresh_J", "background_J")


def simulation(result: Simulation) -> RenderableType:
    """Return totals, then both memories in adjacent columns."""
    totals = [
        ["time", format_time(result.time_s)],
        ["  CPU, between requests", format_time(result.cpu_time_s)],
        ["  waiting for memory", format_time(memory_wait_s(result))],
        [f"energy of {energy_words(result)}", _optional("energy_J", result.energy_J)],
        ["bandwidth", format_quantity("bandwidth_bytes_per_s", result.bandwidth_bytes_per_s)],
        ["simulated at", f"{format_quantity('requests_per_s', result.requests_per_s)} (measured)"],
    ]
    if result.moved_pages:
        totals.append(["pages moved", f"{result.moved_pages:,}"])
        totals.append(["  kernel time for it", format_time(result.stall_s)])
    totals += _difference(result)
    finding = (
        f"{result.source}: {result.requests:,} requests, {result.placement}; {result.engine} "
        f"engine, {controller_words(result)}, writes {result.write_policy}, core {result.core}"
        + (f" of {result.window}." if result.core == "window" else ".")
    )
    finding = " ".join(filter(None, (finding, bound_words(result))))
    tables = Group(
        columns(["The program", ""], totals, 1),
        Text(""),
        columns(["A memory", "near", "far"], _memory_rows(result), 1),
    )
    return block("Simulation", finding, [Origin.SIMULATED], tables, result.limits)


def _memory_rows(result: Simulation) -> list[list[str]]:
    """Return the work and the energies of both memories; what neither has is left out."""
    near, far = result.tiers.near, result.tiers.far
    rows = [["device", near.device, far.device]]
    for key in _TIER_ROWS:
        if getattr(near, key) is not None or getattr(far, key) is not None:
            rows.append([_plain(key), *(_optional(key, getattr(t, key)) for t in (near, far))])
    for key in _ENERGIES:
        if near.energy_parts or far.energy_parts:
            cells = [_optional(key, getattr(t.energy_parts, key, None)) for t in (near, far)]
            rows.append([f"  {_plain(key)}", *cells])
    return rows


def _difference(result: Simulation) -> list[list[str]]:
    """Return the difference between the two engines: internal consistency, not validation."""
    difference = result.difference
    if difference is None:
        return []
    rows = [
        [f"fast against exact (internal consistency, {difference.requests:,} requests)", ""],
        ["  time", f"{difference.time_difference:+.1%}"],
    ]
    if difference.energy_difference is not None:
        rows.append(["  energy", f"{difference.energy_difference:+.1%}"])
    return rows


def _plain(key: str) -> str:
    return key.removesuffix("_ns").removesuffix("_J").removesuffix("_s").replace("_", " ")


def _optional(key: str, value: float | None) -> str:
    return "–" if value is None else format_quantity(key, value)


def load_curve(result: LoadCurve) -> RenderableType:
    """Return one row per load."""
    keys = ("bandwidth_bytes_per_s", "latency_ns", "p99_latency_ns")
    rows = [[format_quantity(key, getattr(p, key)) for key in keys] for p in result.points]
    finding = (
        f"{result.device}, {result.pattern}, {result.read_share:.0%} reads: "
        f"{format_quantity('latency_ns', result.latency_ns)} idle, at most "
        f"{format_quantity('bandwidth_bytes_per_s', result.bandwidth_bytes_per_s)}."
    )
    table = columns(["Bandwidth", "Latency", "p99"], rows, 0)
    return block("Latency by load", finding, [Origin.SIMULATED], table, result.limits)


def simulated(result: Simulation | CountsSimulation | LoadCurve) -> RenderableType:
    """Return any result of ``nearfar sim``."""
    if isinstance(result, CountsSimulation):
        return counts(result)
    return load_curve(result) if isinstance(result, LoadCurve) else simulation(result)


def recorded(result: Simulation | CountsSimulation | LoadCurve) -> RenderableType:
    """Return the result of a record with its warnings, which ``nearfar sim`` prints on stderr."""
    return Group(simulated(result), *(Text(f"· {each}") for each in result.warnings))
