"""Simulations as tables: where the time and the energy go."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.records.shape import Origin
from nearfar.report.text.layout import block, columns
from nearfar.report.wording import format_quantity
from nearfar.simulate.results import CountsSimulation, TierWork
from nearfar.units import format_energy, format_time

_PARTS = ("read_time_s", "write_time_s", "read_energy_J", "write_energy_J", "standby_energy_J",
          "refresh_energy_J")  # fmt: skip


def counts(result: CountsSimulation) -> RenderableType:
    """Totals, then each tier's share."""
    totals = [
        ["time", format_time(result.time_s)],
        ["  of it processor", format_time(result.cpu_time_s)],
        ["  of it memory", format_time(result.memory_time_s)],
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
        f"{near.reads + near.writes + far.reads + far.writes:,} accesses of 64 B; pages "
        f"{result.page_policy}, writes {result.write_policy}."
    )
    tables = Group(columns(["The program", ""], totals, 1), Text(""),
                   columns(["A tier", "near", "far"], parts, 1))  # fmt: skip
    return block("Counts", finding, [Origin.SIMULATED], tables, result.limits)


def _named(key: str) -> str:
    return key.rpartition("_")[0].replace("_", " ")


def _cell(tier: TierWork, key: str) -> str:
    return format_quantity(key, getattr(tier, key))
