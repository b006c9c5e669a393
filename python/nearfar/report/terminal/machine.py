"""This machine in the terminal: its memory, and what disturbs measurements on it."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType
    from rich.table import Table

    from nearfar.machine.model import Cache, Claims, Machine, Tier
    from nearfar.records.run import Finding

_LEVELS = ("warning", "unknown", "note", "ok")


def topology(machine: Machine) -> RenderableType:
    """Return the headline, then a table for each kind of resource."""
    from rich.console import Group

    parts: list[RenderableType] = [_headline(machine), _tiers(machine.tiers), _reasons(machine)]
    parts += [_nodes(machine), _caches(machine)]
    if machine.memory_mode:
        parts.append(f"Memory mode (near memory as a cache): {machine.memory_mode.evidence}")
    if machine.pmem_regions:
        parts.append(_regions(machine))
    if machine.dax_devices:
        parts.append(_dax(machine))
    return Group(*(line for part in parts for line in (part, "")))


def saved_machine(directory: Path, files: int, unread: list[str]) -> RenderableType:
    """Return what was saved of a machine, what could not be read, and how to read it again."""
    from rich.text import Text

    lines = [f"Saved {files} files in {directory}. Read them before you publish them."]
    if unread:
        lines += ["", "Not saved:", *(f"  {each}" for each in unread)]
    lines += ["", f"next: nearfar topo --from {directory}"]
    return Text("\n".join(lines))


def _table(title: str, *columns: str) -> Table:
    """Return a plain table; columns whose name starts with > are right-aligned figures."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for name in columns:
        table.add_column(name.lstrip(">"), justify="right" if name.startswith(">") else "left")
    return table


def _add(table: Table, *cells: str) -> None:
    """Add a row verbatim: a path may contain the brackets that rich takes for markup."""
    from rich.text import Text

    table.add_row(*(Text(cell) for cell in cells))


def _size(size_bytes: int | None) -> str:
    from nearfar.units import format_size

    return "" if size_bytes is None else format_size(size_bytes)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _ranges(numbers: list[int]) -> str:
    """Return ``0-3,8``, the form that ``--cpus`` takes."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def _headline(machine: Machine) -> str:
    packages = len({cpu.package for cpu in machine.cpus})
    cores = len({cpu.core for cpu in machine.cpus})
    usable = len(machine.usable_cpus())
    counts = ", ".join(
        [
            _count(packages, "package", "packages"),
            _count(cores, "core", "cores"),
            _count(len(machine.cpus), "processor", "processors"),
        ]
    )
    if usable != len(machine.cpus):
        counts += f" ({usable} usable)"
    kind = f"virtual machine ({machine.virtual_machine})" if machine.virtual_machine else "no VM"
    return (
        f"{machine.processor}: {counts}, {_size(machine.memory_bytes)}\n"
        f"{machine.kernel}, {kind}, machine id {machine.id}"
    )


def _claim(claims: Claims) -> str:
    """Return ``250 ns, 17.8 GB/s``: what the firmware states about reads."""
    from nearfar.units import format_bandwidth, format_time

    figures = []
    if claims.read_latency_ns:
        figures.append(format_time(claims.read_latency_ns * 1e-9))
    if claims.read_bandwidth_bytes_per_s:
        figures.append(format_bandwidth(claims.read_bandwidth_bytes_per_s))
    return ", ".join(figures)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _tiers(tiers: list[Tier]) -> Table:
    free = any(tier.free_bytes is not None for tier in tiers)  # None on a recorded machine
    table = _table(
        "Tiers",
        "--tier",
        "alias",
        ">capacity",
        *([">free"] if free else []),
        ">node",
        ">dist",
        "DAX",
        "persistence",
        "on",
    )
    for tier in tiers:
        _add(
            table,
            tier.spec,
            _text(tier.alias),
            _size(tier.capacity_bytes),
            *([_size(tier.free_bytes)] if free else []),
            _text(tier.node),
            _text(tier.distance),
            tier.dax,
            tier.persistence,
            tier.medium,
        )
    return table


def _reasons(machine: Machine) -> Table:
    """Return the reason for each kind of persistence; tiers with the same reason share a line."""
    table = _table("What persistence is real", "", "", "")
    table.show_header = False
    by_reason: dict[tuple[str, str], list[str]] = {}
    for tier in machine.tiers:
        by_reason.setdefault((tier.persistence, tier.persistence_reason), []).append(tier.spec)
    for (persistence, reason), specs in by_reason.items():
        _add(table, ", ".join(specs), persistence, reason)
    return table


def _nodes(machine: Machine) -> Table:
    distances = any(node.distances for node in machine.nodes)
    claims = any(_claim(node) for node in machine.nodes)
    table = _table("Memory nodes", ">node", ">size", "CPUs", "kind")
    if distances:
        table.add_column("dist to " + " ".join(str(n.id) for n in machine.nodes))
    if claims:
        table.add_column("reads, according to the firmware")
    for node in machine.nodes:
        row = [str(node.id), _size(node.size_bytes), _ranges(node.cpus) or "none"]
        row.append(_text(node.subtype))
        if distances:
            row.append(" ".join(str(d) for d in node.distances.values()))
        if claims:
            row.append(_claim(node))
        _add(table, *row)
    return table


def _caches(machine: Machine) -> Table:
    note = ", as the hypervisor reports them" if machine.virtual_machine else ""
    table = _table(f"Caches{note}", "level", ">size", ">count", ">line", ">ways", ">shared by")
    alike: dict[tuple[str, ...], int] = {}
    for cache in machine.caches:
        key = _cache_row(cache)
        alike[key] = alike.get(key, 0) + 1
    for (level, size, line, ways, sharers), count in alike.items():
        _add(table, level, size, str(count), line, ways, sharers)
    for near in machine.memory_mode.caches if machine.memory_mode else []:
        _add(
            table,
            "near memory",
            _size(near.size_bytes),
            "1",
            _size(near.line_bytes),
            _text(near.ways),
            f"node {near.node}",
        )
    return table


def _cache_row(cache: Cache) -> tuple[str, str, str, str, str]:
    letter = {"unified": "", "data": "d", "instruction": "i"}[cache.type]
    return (
        f"L{cache.level}{letter}",
        _size(cache.size_bytes),
        _size(cache.line_bytes),
        str(cache.ways or "?"),
        _count(len(cache.cpus), "cpu", "cpus"),
    )


_DOMAINS = {"cpu_cache": "eADR", "memory_controller": "ADR"}


def _regions(machine: Machine) -> Table:
    table = _table(
        "Persistent regions",
        "region",
        "provider",
        ">size",
        ">node",
        "power-fail",
        "namespace",
        "mode",
        ">size",
        "mounted",
    )
    for region in machine.pmem_regions:
        head = [
            region.name,
            _text(region.provider),
            _size(region.size_bytes),
            _text(region.node),
            _DOMAINS.get(region.persistence_domain or "", "unknown"),
        ]
        if not region.namespaces:
            _add(table, *head, "none")
        for space in region.namespaces:
            mount = (
                "" if not space.mount else space.mount + (" (dax)" if space.dax else " (no dax)")
            )
            _add(table, *head, space.name, space.mode, _size(space.size_bytes), mount)
            head = [""] * len(head)
    return table


def _dax(machine: Machine) -> Table:
    heads = ("device", ">size", ">CPU node", ">memory node", "state", "backed by")
    table = _table("DAX devices", *heads)
    for device in machine.dax_devices:
        _add(
            table,
            device.path,
            _size(device.size_bytes),
            _text(device.node),
            _text(device.target_node),
            device.state,
            device.region or device.backing,
        )
    return table


def findings(found: list[Finding]) -> Table:
    """Return the findings of ``nearfar doctor``, warnings first.

    Consequence and fix are printed once, after the last of adjacent findings that share them.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    ordered = sorted(found, key=lambda f: _LEVELS.index(f.level))
    for finding, following in zip_longest(ordered, ordered[1:]):
        text = Text(finding.found)
        if finding.level != "ok" and not (following and _alike(finding, following)):
            if finding.why:
                text.append(f"\n{finding.why}", style="dim")
            if finding.fix:
                text.append(f"\n→ {finding.fix}")
        style = {"warning": "bold yellow", "ok": "green"}.get(finding.level, "")
        table.add_row(Text(finding.level, style=style), Text(finding.check), text)
    return table


def _alike(one: Finding, other: Finding) -> bool:
    return (one.level, one.why, one.fix) == (other.level, other.why, other.fix)
