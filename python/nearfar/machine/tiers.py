"""The tiers that a machine offers, and which of them are proposed as near and far."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearfar import _native
from nearfar.machine import persistence
from nearfar.machine.devices import Devices
from nearfar.machine.model import Cpu, MemoryMode, Namespace, Node, PmemRegion, Tier
from nearfar.machine.mounts import Mount, disk_of, mount_of
from nearfar.machine.persistence import Verdict
from nearfar.machine.root import Root
from nearfar.records.figures import Provenance


@dataclass(frozen=True)
class Facts:
    """Inputs of the proposals."""

    root: Root
    nodes: list[Node]
    cpus: list[Cpu]
    devices: Devices
    mounts: list[Mount]
    memory_mode: MemoryMode | None
    virtual_machine: str | None

    def near_node(self) -> Node | None:
        """The node of the first usable CPU, where ``dram`` is allocated."""
        first = min((cpu for cpu in self.cpus if cpu.usable), key=lambda c: c.id, default=None)
        wanted = first.node if first else None
        return next(
            (n for n in self.nodes if n.id == wanted), self.nodes[0] if self.nodes else None
        )

    def distance(self, node: int | None) -> int | None:
        """Distance from the near node, as reported by the firmware."""
        near = self.near_node()
        return near.distances.get(node) if near and node is not None else None


def _judged(verdict: Verdict) -> dict[str, Any]:
    return {
        "persistence": verdict.persistence,
        "persistence_reason": verdict.reason,
        "flushes_needed": verdict.flushes_needed,
    }


def _claims(node: Node) -> dict[str, Any]:
    """The firmware's figures of a node; they hold for its nearest CPUs."""
    provenance: dict[str, Provenance] = node.provenance
    return {**{key: getattr(node, key) for key in provenance}, "provenance": provenance}


def _free_in_file_system(root: Root, path: str) -> tuple[int | None, int | None]:
    """Total and free bytes of the file system at a path; None for a described machine."""
    if not root.live:
        return None, None
    try:
        facts = os.statvfs(path)
    except OSError:
        return None, None
    return facts.f_blocks * facts.f_frsize, facts.f_bavail * facts.f_frsize


def _medium(facts: Facts, node: Node) -> str:
    if facts.memory_mode and any(c.node == node.id for c in facts.memory_mode.caches):
        return "far memory behind a near-memory cache"
    dax = next(
        (d for d in facts.devices.dax if d.state == "kmem" and d.target_node == node.id), None
    )
    if dax:
        return f"{dax.backing} memory given to the kernel ({dax.name})"
    return node.subtype or ("memory without processors" if node.cpuless else "DRAM")


def _dram(facts: Facts) -> Iterator[Tier]:
    near = facts.near_node()
    if near is None:
        return
    yield Tier(
        name="dram",
        spec="dram",
        capacity_bytes=near.size_bytes,
        free_bytes=_native.available_memory_bytes() if facts.root.live else None,
        node=near.id,
        distance=facts.distance(near.id),
        medium=_medium(facts, near),
        **_claims(near),
        **_judged(persistence.VOLATILE),
    )


def _other_nodes(facts: Facts) -> Iterator[Tier]:
    near = facts.near_node()
    kmem = {d.target_node for d in facts.devices.dax if d.state == "kmem"}
    for node in facts.nodes:
        if node is near or node.size_bytes == 0:
            continue
        given = node.cpuless and node.id in kmem
        # The firmware reports figures for a node's nearest CPUs: for a remote socket not ours.
        claims = _claims(node) if node.cpuless else {}
        yield Tier(
            name=f"node{node.id}",
            spec=f"numa:{node.id}",
            capacity_bytes=node.size_bytes,
            node=node.id,
            free_bytes=facts.root.kib(f"sys/devices/system/node/node{node.id}/meminfo", "MemFree"),
            distance=facts.distance(node.id),
            dax="kmem" if given else "no",
            medium=_medium(facts, node),
            **claims,
            **_judged(persistence.KMEM if given else persistence.VOLATILE),
        )


def _region_verdict(facts: Facts, region: PmemRegion) -> Verdict:
    return persistence.of_region(
        region.provider, region.volatile, region.persistence_domain, facts.virtual_machine
    )


def _region_medium(region: PmemRegion) -> str:
    return f"{region.name} of {region.provider or 'an unknown provider'}"


def _fsdax(facts: Facts) -> Iterator[Tier]:
    for region in facts.devices.regions:
        for space in region.namespaces:
            if space.mount and space.dax:
                yield _fsdax_tier(facts, region, space, space.mount)


def _fsdax_tier(facts: Facts, region: PmemRegion, space: Namespace, mount: str) -> Tier:
    total, free = _free_in_file_system(facts.root, mount)
    return Tier(
        name=space.device or space.name,
        spec=f"fsdax:{mount}",
        capacity_bytes=total or space.size_bytes,
        free_bytes=free,
        node=region.node,
        dax="fsdax",
        medium=_region_medium(region),
        **_judged(_region_verdict(facts, region)),
    )


def _devdax(facts: Facts) -> Iterator[Tier]:
    regions = {region.name: region for region in facts.devices.regions}
    for device in facts.devices.dax:
        if device.state != "devdax":
            continue
        region = regions.get(device.region or "")
        verdict = persistence.UNKNOWN_DAX
        if region is not None:
            verdict = _region_verdict(facts, region)
        elif device.backing in {"cxl", "soft-reserved"}:
            # persistent CXL memory comes through the NVDIMM bus, so this is the volatile kind
            soft = device.backing == "soft-reserved"
            verdict = persistence.SOFT_RESERVED if soft else persistence.VOLATILE
        yield Tier(
            name=device.name,
            spec=f"devdax:{device.path}",
            capacity_bytes=device.size_bytes,
            node=device.node,
            dax="devdax",
            medium=_region_medium(region) if region else f"{device.backing} memory",
            **_judged(verdict),
        )


def _shm(facts: Facts) -> Iterator[Tier]:
    mount = mount_of(Path("/dev/shm"), facts.mounts)
    if mount is None or mount.file_system != "tmpfs":
        return
    total, free = _free_in_file_system(facts.root, mount.point)
    limit = re.search(r"\bsize=(\d+)k", ",".join(mount.options))
    if total is None and limit:
        total = int(limit[1]) << 10
    yield Tier(
        name="shm",
        spec="shm:",
        capacity_bytes=total,
        free_bytes=free,
        medium="tmpfs, DRAM",
        **_judged(persistence.SHM),
    )


def _file(facts: Facts) -> Iterator[Tier]:
    """The file system of the current directory; none for a described machine."""
    if not facts.root.live:
        return
    mount = mount_of(Path.cwd(), facts.mounts)
    if mount is None:
        return
    disk = disk_of(facts.root, mount)
    medium = disk.words(facts.virtual_machine is not None) if disk else mount.source
    total, free = _free_in_file_system(facts.root, ".")
    yield Tier(
        name="file",
        spec="file:.",
        capacity_bytes=total,
        free_bytes=free,
        medium=f"{mount.file_system} on {medium}",
        **_judged(
            persistence.of_file(
                mount.file_system, disk.name if disk else None, facts.virtual_machine
            )
        ),
    )


def _farness(tier: Tier, cpuless: set[int]) -> int:
    """Rank of a tier as far memory, 0 being best; 9 for a tier that is never far memory."""
    if tier.spec.startswith("numa:"):
        return 0 if tier.node in cpuless else 5
    if tier.dax in {"fsdax", "devdax"}:
        return {"real": 1, "claimed": 2, "none": 3, "emulated": 4}[tier.persistence]
    return 6 if tier.name == "file" and tier.persistence != "emulated" else 9


def _name_near_and_far(tiers: list[Tier], nodes: list[Node]) -> None:
    cpuless = {node.id for node in nodes if node.cpuless}
    for tier in tiers[:1]:
        tier.alias = "near"
    candidates = [
        (_farness(t, cpuless), t.distance or 255, t.node != tiers[0].node, i)
        for i, t in enumerate(tiers)
        if not t.alias
    ]
    rank, *_, index = min(candidates, default=(9, 0))
    if rank < 9:
        tiers[index].alias = "far"


def propose(facts: Facts) -> list[Tier]:
    """All tiers, near first. At most one is called far: memory without processors before
    persistent memory, that before the other socket, that before a file on a disk.
    """
    makers = (_dram, _other_nodes, _fsdax, _devdax, _shm, _file)
    tiers = [tier for make in makers for tier in make(facts)]
    _name_near_and_far(tiers, facts.nodes)
    return tiers
