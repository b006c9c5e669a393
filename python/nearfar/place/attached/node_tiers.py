"""Tiers as sets of NUMA nodes: pages of a running process move between nodes, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nearfar.errors import BadInputError, MachineError, NearfarError
from nearfar.plan_files.tier_options import TierOptions, parse_tier_options
from nearfar.units import format_size, parse_cpus

_NODES = Path("/sys/devices/system/node")


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
    try:
        options = parse_tier_options(specification)
    except NearfarError as error:
        raise type(error)(f"{error.what} (tier {name})", error.next_step) from None
    nodes = _nodes(name, options)
    return NodeTier(name, specification, nodes, options.capacity_bytes, options.weights)


def _nodes(name: str, options: TierOptions) -> frozenset[int]:
    if options.kind == "dram":
        return nodes_with("has_memory") & nodes_with("has_cpu") or nodes_with("has_memory")
    if not options.nodes:
        raise BadInputError(
            f"tier {name} is {options.kind}:, and pages of a running process can only move between "
            "nodes",
            f"name nodes: --tier {name}=numa:1; `nearfar topo` lists them",
        )
    nodes = frozenset(options.nodes)
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
