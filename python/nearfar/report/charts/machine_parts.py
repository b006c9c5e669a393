"""Parts in the picture of a machine: packages, groups of cores, and memory, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nearfar.machine.model import Cache, Claims, Cpu, Machine, Node
from nearfar.report.wording import count, format_quantity
from nearfar.units import format_size


@dataclass(frozen=True)
class Core:
    """A core with its CPUs; ``usable``: this process may run on one of them."""

    name: str
    cpus: str
    usable: bool


@dataclass(frozen=True)
class CoreGroup:
    """Cores that share a last cache; ``cache`` is empty if none is shared."""

    cores: Sequence[Core]
    cache: str


@dataclass(frozen=True)
class Memory:
    """A memory at a package; ``remote``: it has no CPUs of its own."""

    title: str
    lines: Sequence[str]
    tag: str = ""
    remote: bool = False


@dataclass(frozen=True)
class Package:
    """A package, its other caches in words, and the memory that is nearest to it."""

    title: str
    groups: Sequence[CoreGroup]
    caches: Sequence[str]
    memories: Sequence[Memory]


def packages(machine: Machine, latencies: Mapping[str, str]) -> list[Package]:
    """Return the packages of a machine in order."""
    numbers = sorted({cpu.package for cpu in machine.cpus})
    return [_package(machine, number, latencies, numbers[0]) for number in numbers]


def _package(machine: Machine, number: int, latencies: Mapping[str, str], first: int) -> Package:
    cpus = [cpu for cpu in machine.cpus if cpu.package == number]
    nodes = {cpu.node for cpu in cpus}
    cores = len({cpu.core for cpu in cpus})
    name = f"Package {number}: {count(cores, 'core')}, {count(len(cpus), 'CPU')}"
    last = _last_shared(machine, cpus)
    memories = [
        *(_node(machine, node, latencies) for node in machine.nodes if node.id in nodes),
        *(
            _node(machine, node, latencies)
            for node in machine.nodes
            if node.cpuless and _nearest(machine, node) in nodes
        ),
        # A device of unknown position is shown at the first package.
        *_devices(machine, nodes | ({None} if number == first else set()), latencies),
        *(_files(machine, latencies) if number == first else ()),
    ]
    return Package(name, _groups(cpus, last), _others(machine, cpus, last), memories)


def _nearest(machine: Machine, node: Node) -> int | None:
    """Return the node with CPUs that is nearest to one without."""
    able = [each for each in machine.nodes if not each.cpuless]
    if not able:
        return None
    return min(able, key=lambda each: (each.distances.get(node.id, 255), each.id)).id


def _last_shared(machine: Machine, cpus: Sequence[Cpu]) -> list[Cache]:
    """Return the caches of the last level in a package; empty if each core has its own."""
    core = {cpu.id: cpu.core for cpu in cpus}
    mine = [c for c in machine.caches if c.type != "instruction" and core.keys() & set(c.cpus)]
    level = max((cache.level for cache in mine), default=0)
    last = [cache for cache in mine if cache.level == level]
    shared = any(len({core[cpu] for cpu in c.cpus if cpu in core}) > 1 for c in last)
    return last if shared or len(set(core.values())) == 1 else []


def _groups(cpus: Sequence[Cpu], last: Sequence[Cache]) -> list[CoreGroup]:
    groups = [
        CoreGroup(_cores([cpu for cpu in cpus if cpu.id in cache.cpus]), _cache_name(cache))
        for cache in last
    ]
    rest = [cpu for cpu in cpus if not any(cpu.id in cache.cpus for cache in last)]
    return [*groups, *([CoreGroup(_cores(rest), "")] if rest else [])]


def _cores(cpus: Sequence[Cpu]) -> list[Core]:
    cores: dict[int, list[Cpu]] = {}
    for cpu in cpus:
        cores.setdefault(cpu.core, []).append(cpu)
    return [
        Core(
            f"core {number}",
            f"CPU {', '.join(str(cpu.id) for cpu in own)}",
            any(cpu.usable for cpu in own),
        )
        for number, own in sorted(cores.items())
    ]


def _cache_name(cache: Cache) -> str:
    kind = {"data": "d", "instruction": "i", "unified": ""}[cache.type]
    return f"L{cache.level}{kind} {format_size(cache.size_bytes)}"


def _others(machine: Machine, cpus: Sequence[Cpu], last: Sequence[Cache]) -> list[str]:
    """Return the caches below the shared one in a line, each size once."""
    core = {cpu.id: cpu.core for cpu in cpus}
    names: dict[str, None] = {}
    for cache in sorted(machine.caches, key=lambda c: (c.level, c.type)):
        own = {core[cpu] for cpu in cache.cpus if cpu in core}
        if not own or any(cache is each for each in last):
            continue
        names[_cache_name(cache) + (f" for {len(own)} cores" if len(own) > 1 else "")] = None
    return [f"Each core: {', '.join(names)}"] if names else []


def _node(machine: Machine, node: Node, latencies: Mapping[str, str]) -> Memory:
    tier = next((t for t in machine.tiers if t.spec in _specs(machine, node)), None)
    kind = node.subtype or ("memory" if node.cpuless else "DRAM")
    lines = [f"without CPUs, distance {_distance(machine, node)}"] if node.cpuless else []
    cached = machine.memory_mode.caches if machine.memory_mode else []
    lines += [
        f"behind {format_size(c.size_bytes)} of near memory as a cache"
        for c in cached
        if c.node == node.id
    ]
    lines += _speeds(node, latencies.get(tier.spec, "") if tier else "")
    title = f"Node {node.id}: {format_size(node.size_bytes)} {kind}"
    return Memory(title, lines, (tier.alias or "") if tier else "", node.cpuless)


def _specs(machine: Machine, node: Node) -> tuple[str, ...]:
    """Return the tiers that a node can be; ``dram`` is the near one."""
    near = next((tier.node for tier in machine.tiers if tier.spec == "dram"), None)
    own = f"numa:{node.id}"
    return (own, "dram") if near in (node.id, None) else (own,)


def _distance(machine: Machine, node: Node) -> str:
    nearest = next(each for each in machine.nodes if each.id == _nearest(machine, node))
    return str(nearest.distances.get(node.id, "unknown"))


def _speeds(claims: Claims, measured: str) -> list[str]:
    """Return what was measured, and what the firmware claims."""
    claimed = [
        format_quantity(key, value)
        for key in ("read_latency_ns", "read_bandwidth_bytes_per_s")
        if (value := getattr(claims, key)) is not None
    ]
    lines = [f"{measured} a load"] if measured else []
    return [*lines, *([f"firmware claims {', '.join(claimed)}"] if claimed else [])]


def _devices(
    machine: Machine, nodes: set[int | None], latencies: Mapping[str, str]
) -> Iterator[Memory]:
    """Yield persistent regions, and DAX devices that are neither part of one nor a node."""
    aliases = {tier.spec.partition(":")[2]: tier for tier in machine.tiers if ":" in tier.spec}
    for region in machine.pmem_regions:
        if region.node in nodes:
            uses = [use for space in region.namespaces if (use := space.mount or space.device)]
            places = [*uses, *(d.path for d in machine.dax_devices if d.region == region.name)]
            tiers = [aliases[place] for place in places if place in aliases]
            tag = next((tier.alias for tier in tiers if tier.alias), None) or ""
            lines = [f"persistence {region.persistence}: {', '.join(places) or 'not in use'}"]
            lines += [f"{latencies[t.spec]} a load" for t in tiers if t.spec in latencies]
            yield Memory(f"{region.name}: {_size(region.size_bytes)} persistent", lines, tag, True)
    for device in machine.dax_devices:
        if device.region is None and device.state != "kmem" and device.node in nodes:
            tier = aliases.get(device.path)
            lines = [f"{device.backing}, {device.state}"]
            lines += _speeds(tier, latencies.get(tier.spec, "")) if tier else []
            title = f"{device.path}: {_size(device.size_bytes)}"
            yield Memory(title, lines, (tier.alias or "") if tier else "", True)


def _files(machine: Machine, latencies: Mapping[str, str]) -> Iterator[Memory]:
    """Yield the near or far tier if it is a file system, which belongs to no package."""
    for tier in machine.tiers:
        if tier.alias and tier.dax == "no" and tier.node is None:
            lines = [tier.medium, *_speeds(tier, latencies.get(tier.spec, ""))]
            title = f"{tier.spec}: {_size(tier.capacity_bytes)}"
            yield Memory(title, lines, tier.alias, True)


def _size(size_bytes: int | None) -> str:
    return "size unknown" if size_bytes is None else format_size(size_bytes)
