"""Tiers as sets of NUMA nodes: pages of a running process move between nodes, and nowhere else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nearfar.errors import BadInputError, MachineError
from nearfar.units import format_size, parse_cpus, parse_size

_NODES = Path("/sys/devices/system/node")
#: Options of libhmalloc (hmalloc(3)) that do not concern pages that exist.
_WITHOUT_EFFECT = re.compile(
    r"bind|prefer|weighted|populate|pages=(thp|4k)|overflow=.*|reserve=.*|fork=.*"
)
_NUMA = re.compile(r"numa:([0-9]+(?:\+[0-9]+)*)")


@dataclass(frozen=True)
class NodeTier:
    """A tier. Pages on any of its ``nodes`` are where they belong; ``capacity_bytes``: None if it
    has no limit; ``weights``: of an interleaved tier, by node."""

    name: str
    specification: str
    nodes: frozenset[int]
    capacity_bytes: int | None = None
    weights: Mapping[int, int] = field(default_factory=dict)


def node_tiers(tiers: Mapping[str, str]) -> dict[str, NodeTier]:
    """Tiers by name, from specifications as in ``--tier``.

    Raises BadInputError for an invalid one and for memory that is not that of nodes, MachineError
    for nodes that this machine does not have.
    """
    return {name: _tier(name, specification) for name, specification in tiers.items()}


def _tier(name: str, specification: str) -> NodeTier:
    memory, *options = specification.split(",")
    nodes = _nodes(name, memory)
    capacity, weights = None, {}
    for option in options:
        if option.startswith("capacity="):
            capacity = parse_size(option.removeprefix("capacity="))
        elif option.startswith("weights="):
            weights = _weights(name, memory, option.removeprefix("weights="))
        elif not _WITHOUT_EFFECT.fullmatch(option):
            raise BadInputError(
                f"invalid option '{option}' of tier {name}", "hmalloc(3) lists the options of tiers"
            )
    return NodeTier(name, specification, nodes, capacity, weights)


def _weights(name: str, memory: str, text: str) -> dict[int, int]:
    """Weights by node, of a tier that names its nodes."""
    nodes = memory.removeprefix("numa:").split("+")
    weights = text.split(":")
    valid = all(re.fullmatch("[0-9]{1,3}", each) and 1 <= int(each) <= 255 for each in weights)
    if not valid or len(weights) != len(nodes) or len(nodes) < 2:
        raise BadInputError(
            f"invalid weights '{text}' of tier {name}: one of 1 to 255 for each of its nodes",
            f"write them like --tier {name}=numa:0+1,weights=5:3",
        )
    found: Counter[int] = Counter()
    for node, weight in zip(nodes, weights, strict=True):
        found[int(node)] += int(weight)
    return found


def _nodes(name: str, memory: str) -> frozenset[int]:
    if memory == "dram":
        return nodes_with("has_memory") & nodes_with("has_cpu") or nodes_with("has_memory")
    match = _NUMA.fullmatch(memory)
    if match is None:
        from nearfar._native import parse_tier

        parse_tier(memory)  # raises for an invalid tier
        raise BadInputError(
            f"tier {name} is {memory}, and pages of a running process can only move between nodes",
            f"name nodes: --tier {name}=numa:1; `nearfar topo` lists them",
        )
    nodes = frozenset(int(number) for number in match[1].split("+"))
    absent = nodes - nodes_with("has_memory")
    if absent:
        raise MachineError(
            f"this machine has no memory on NUMA node {min(absent)} (tier {name})",
            "`nearfar topo` lists the nodes that exist",
        )
    return nodes


def nodes_with(what: str) -> frozenset[int]:
    """Nodes in a list of the kernel: ``has_memory``, ``has_cpu``. Node 0 in a kernel without
    NUMA."""
    try:
        text = (_NODES / what).read_text().strip()
    except OSError:
        return frozenset({0})
    return frozenset(parse_cpus(text)) if text else frozenset()


def free_bytes(node: int) -> int:
    """Free memory of a node; 0 if it is unknown."""
    try:
        text = (_NODES / f"node{node}" / "meminfo").read_text()
    except OSError:
        return 0
    found = re.search(r"MemFree:\s*([0-9]+) kB", text)
    return int(found[1]) << 10 if found else 0


def freest(nodes: frozenset[int]) -> int:
    """The node that has the most free memory."""
    return max(sorted(nodes), key=free_bytes)


def described(tier: NodeTier) -> str:
    """The tier in words."""
    ordered = sorted(tier.nodes)
    nodes = "+".join(str(node) for node in ordered)
    if tier.weights:
        nodes += ", " + ":".join(str(tier.weights[node]) for node in ordered)
    limit = f", up to {format_size(tier.capacity_bytes)}" if tier.capacity_bytes else ""
    return f"{tier.name} (node {nodes}{limit})"
