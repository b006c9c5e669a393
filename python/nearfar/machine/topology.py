"""Build a :class:`Machine` from hwloc and ``/sys``: this machine, or one saved in a directory."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from pathlib import Path
from typing import Literal

from nearfar import _native
from nearfar.errors import BadInputError
from nearfar.machine import hypervisor
from nearfar.machine.devices import Devices, nvdimms, read_devices
from nearfar.machine.model import Cache, Cpu, Machine, MemoryMode, NearCache, Node
from nearfar.machine.mounts import read_mounts
from nearfar.machine.root import Root
from nearfar.machine.tiers import Facts, propose
from nearfar.records.figures import claimed
from nearfar.units import parse_cpus

_NODES = "sys/devices/system/node"
_RETAKE = "give a directory that holds hwloc.xml (from `lstopo --of xml`) and a copy of sys/"
_FIRMWARE = "HMAT or CDAT, as the firmware claims, from the node's nearest processors"

#: Names of figures, the kernel's file for each, and the factor to base units (ns; MB/s).
_CLAIMS = (
    ("read_latency_ns", "read_latency", 1.0),
    ("write_latency_ns", "write_latency", 1.0),
    ("read_bandwidth_bytes_per_s", "read_bandwidth", 1e6),
    ("write_bandwidth_bytes_per_s", "write_bandwidth", 1e6),
)
_CACHE_TYPES: dict[str, Literal["unified", "data", "instruction"]] = {
    "u": "unified",
    "d": "data",
    "i": "instruction",
}


def this_machine() -> Machine:
    """Describe the machine we run on; needs no privileges. Raises NativeError if hwloc fails."""
    return _read(Root(), None)


def machine_from(path: Path) -> Machine:
    """Describe a machine saved in a directory: ``hwloc.xml``, ``sys/`` and optionally ``proc/``.

    Raises BadInputError naming what is missing, NativeError for a damaged ``hwloc.xml``.
    """
    for needed in (path, path / "hwloc.xml", path / "sys"):
        if not needed.exists():
            raise BadInputError(f"there is no {needed}", _RETAKE)
    return _read(Root(path), str(path / "hwloc.xml"))


def _cpus_of_node(root: Root, node: _native.TopologyNode) -> list[int]:
    """The node's own CPUs. hwloc attaches nodes without CPUs next to their nearest CPUs."""
    file = f"{_NODES}/node{node['id']}/cpulist"
    text = root.text(file)
    if text is None:
        return node["near_cpus"]
    try:
        return parse_cpus(text) if text else []
    except BadInputError as error:
        raise BadInputError(f"{root.path / file} is damaged: {error.what}", _RETAKE) from None


def _claims_of(root: Root, node: _native.TopologyNode) -> dict[str, float]:
    """Figures of the firmware: from the kernel's files first, which separate reads from writes.

    ``access1`` describes the nearest CPUs, ``access0`` the nearest initiator of any kind.
    """
    directory = f"{_NODES}/node{node['id']}"
    found: dict[str, float] = {}
    for key, file, factor in _CLAIMS:
        reported = root.number(f"{directory}/access1/initiators/{file}") or root.number(
            f"{directory}/access0/initiators/{file}"
        )
        from_hwloc: float | None = node[key]  # type: ignore[literal-required]
        value = reported * factor if reported else from_hwloc
        if value:
            found[key] = value
    return found


def _nodes(root: Root, topology: _native.Topology, memory: int, devices: Devices) -> list[Node]:
    ids = [node["id"] for node in topology["nodes"]]
    subtypes = {
        d.target_node: "CXL" if d.backing == "cxl" else "NVM" if d.backing == "pmem" else None
        for d in devices.dax
        if d.state == "kmem"
    }
    nodes = []
    for node in topology["nodes"]:
        cpus = _cpus_of_node(root, node)
        claims = _claims_of(root, node)
        nodes.append(
            Node(
                id=node["id"],
                # A kernel that onlines memory late reports too little for each node.
                size_bytes=max(memory, node["local_bytes"])
                if len(ids) == 1
                else node["local_bytes"],
                cpus=cpus,
                cpuless=not cpus,
                subtype=subtypes.get(node["id"]) or node["subtype"] or None,
                distances=dict(zip(ids, node["distances"], strict=False)),
                provenance={key: claimed(_FIRMWARE) for key in claims},
                **claims,  # type: ignore[arg-type]
            )
        )
    return nodes


def _ways(cache: _native.TopologyCache) -> int | None:
    if cache["ways"] < 0 and cache["line_bytes"]:
        return cache["size_bytes"] // cache["line_bytes"]  # fully associative
    return cache["ways"] if cache["ways"] > 0 else None


def _caches(topology: _native.Topology) -> list[Cache]:
    return [
        Cache(
            level=cache["level"],
            type=_CACHE_TYPES[cache["type"]],
            size_bytes=cache["size_bytes"],
            line_bytes=cache["line_bytes"] or None,
            ways=_ways(cache),
            cpus=cache["cpus"],
        )
        for cache in topology["caches"]
    ]


def _memory_mode(root: Root, topology: _native.Topology, devices: Devices) -> MemoryMode | None:
    caches = [
        NearCache(
            node=cache["node"],
            size_bytes=cache["size_bytes"],
            line_bytes=cache["line_bytes"] or None,
            ways=_ways(cache),
        )
        for cache in topology["memory_caches"]
    ]
    if caches:
        return MemoryMode(
            evidence="the firmware reports a memory-side cache of each node (HMAT)", caches=caches
        )
    dimms = nvdimms(root)
    if dimms and not devices.regions:
        return MemoryMode(
            evidence=f"{len(dimms)} NVDIMMs without any persistent region: most likely the near "
            "memory caches them",
            caches=[],
        )
    return None


def _cpus(topology: _native.Topology, nodes: list[Node]) -> list[Cpu]:
    home = {cpu: node.id for node in reversed(nodes) for cpu in node.cpus}
    return [Cpu(node=home.get(cpu["id"]), **cpu) for cpu in topology["cpus"]]


def _memory_bytes(root: Root, topology: _native.Topology) -> int:
    reported = root.kib("proc/meminfo", "MemTotal")
    return reported or sum(node["local_bytes"] for node in topology["nodes"])


def _identity(topology: _native.Topology, memory: int) -> str:
    """Twelve hexadecimal digits derived from properties that do not change with boots and kernels.

    Memory is rounded to a power of two: firmware and kernel reserve varying amounts of it.
    """
    caches = Counter((c["level"], c["type"], c["size_bytes"]) for c in topology["caches"])
    facts = [
        topology["processor"],
        len(topology["nodes"]),
        sorted((cpu["package"], cpu["core"], cpu["id"]) for cpu in topology["cpus"]),
        sorted([*key, count] for key, count in caches.items()),
        round(math.log2(memory)) if memory else 0,
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]


def _read(root: Root, xml_path: str | None) -> Machine:
    topology = _native.topology(xml_path)
    virtual = hypervisor.detect(root)
    mounts = read_mounts(root)
    devices = read_devices(root, mounts, virtual)
    memory = _memory_bytes(root, topology)
    nodes = _nodes(root, topology, memory, devices)
    cpus = _cpus(topology, nodes)
    mode = _memory_mode(root, topology, devices)
    teller = "the hypervisor, which may report caches that are not there" if virtual else "kernel"
    return Machine(
        id=_identity(topology, memory),
        processor=topology["processor"] or "unknown processor",
        kernel=topology["kernel"] or "unknown kernel",
        virtual_machine=virtual,
        memory_bytes=memory,
        nodes=nodes,
        caches=_caches(topology),
        cpus=cpus,
        memory_mode=mode,
        pmem_regions=devices.regions,
        dax_devices=devices.dax,
        cxl_devices=devices.cxl,
        tiers=propose(Facts(root, nodes, cpus, devices, mounts, mode, virtual)),
        provenance={
            "caches": claimed(f"as reported by {teller}"),
            "memory_bytes": claimed("as the kernel reports it"),
        },
    )
