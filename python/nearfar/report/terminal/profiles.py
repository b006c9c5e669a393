"""The list of device profiles and hosts in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.records.profile_list import ListedProfile
from nearfar.report.terminal.layout import columns
from nearfar.units import format_bandwidth

_HEADS = {"device": "Device profiles (--far, --near)", "host": "Hosts (--host)"}


def profiles(rows: Sequence[ListedProfile]) -> RenderableType:
    """Return a table for each kind."""
    parts: list[RenderableType] = []
    for kind, head in _HEADS.items():
        found = [row for row in rows if row.kind == kind]
        if found:
            has_origin = any(row.origin != "shipped" for row in found)
            origin = ["Origin"] if has_origin else []
            cells = [_cells(row, has_origin=has_origin) for row in found]
            table = columns(["Name", "Reads", "Bandwidth", *origin, "What"], cells, 5)
            parts += [Text(head, style="bold"), table, Text("")]
    return Group(*parts[:-1])


def _cells(row: ListedProfile, *, has_origin: bool) -> list[str]:
    latency, rate = row.read_latency_ns, row.bandwidth_bytes_per_s
    return [
        row.name,
        f"{latency:.0f} ns" if latency else "–",
        format_bandwidth(rate) if rate else "–",
        *([row.origin] if has_origin else []),
        row.title,
    ]
