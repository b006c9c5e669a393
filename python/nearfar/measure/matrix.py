"""Latency and bandwidth from the CPUs of each node to the memory of each node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from nearfar._native import ArrayBench, LatencyProbe
from nearfar.errors import MachineError
from nearfar.machine.model import Machine
from nearfar.machine.root import Root
from nearfar.measure import latency
from nearfar.measure.ceiling import check_latency, check_rate
from nearfar.measure.session import Effort, Samples, Session
from nearfar.records.matrix import MatrixPoint, MatrixResult
from nearfar.stats import median
from nearfar.units import MIB

SAMPLE_NS = 5_000_000
WARM_STEPS = 1 << 16
#: Size of each array; all CPUs of a node read or write it together.
MIN_ARRAY_BYTES = 64 * MIB
_READ, _WRITE = "read", "ntwrite"


class NodePath(NamedTuple):
    """From the CPUs of a node to the memory of a node; ``what``: ``load`` or an array kernel."""

    cpu_node: int
    memory_node: int
    what: str


@dataclass(frozen=True)
class MatrixPlan:
    """All paths between ``cpus`` by node and ``memories``. Values: ns a load, or bytes/s."""

    cpus: tuple[tuple[int, tuple[int, ...]], ...]
    memories: tuple[int, ...]
    region_bytes: int
    array_bytes: int

    @property
    def grid(self) -> Sequence[NodePath]:
        """The paths, in the order of the report."""
        return [
            NodePath(node, memory, what)
            for node, _ in self.cpus
            for memory in self.memories
            for what in ("load", _READ, _WRITE)
        ]

    def epoch(self, seed: int) -> Samples[NodePath]:
        """Fresh memory of each node, in turns."""
        samples: Samples[NodePath] = Samples()
        for node, cpus in self.cpus:
            for memory in self.memories:
                self._loads(NodePath(node, memory, "load"), cpus[0], seed, samples)
                self._rates(node, memory, cpus, samples)
        return samples

    def _loads(self, path: NodePath, cpu: int, seed: int, samples: Samples[NodePath]) -> None:
        probe = LatencyProbe(tier_of(path.memory_node), self.region_bytes, cpu)
        probe.prepare(self.region_bytes, 64, seed, WARM_STEPS)
        taken = probe.sample_chains(1, SAMPLE_NS)
        samples.add(path, check_latency(taken["latency_ns"], 1, _named(path)), [taken])

    def _rates(
        self, node: int, memory: int, cpus: tuple[int, ...], samples: Samples[NodePath]
    ) -> None:
        tier = tier_of(memory)
        bench = ArrayBench(tier, tier, tier, self.array_bytes // 8, list(cpus))
        for kernel in (_READ, _WRITE):
            path = NodePath(node, memory, kernel)
            run = bench.repeat(kernel, list(cpus))
            rate = run["counted_bytes"] / run["seconds"]
            samples.add(path, check_rate(rate, len(cpus), _named(path)), run["members"])

    def smaller(self) -> MatrixPlan | None:
        """The same paths with a smaller region; no path is dropped."""
        smaller = self.region_bytes // 2
        return replace(self, region_bytes=smaller) if smaller >= MIN_ARRAY_BYTES else None


def tier_of(node: int) -> str:
    """The tier of a node's memory; on huge pages if the kernel has them, to avoid page walks."""
    tier = f"numa:{node}"
    mode = Root().text("sys/kernel/mm/transparent_hugepage/enabled") or "[never]"
    return tier if "[never]" in mode else latency.page_variants(tier)[0]


def _named(path: NodePath) -> str:
    cpus, memory = path.cpu_node, path.memory_node
    return f"{path.what} from the CPUs of node {cpus} to the memory of node {memory}"


def memory_nodes(machine: Machine) -> list[int]:
    """Nodes with memory."""
    return [node.id for node in machine.nodes if node.size_bytes]


def plan_of(
    machine: Machine, chosen: Sequence[int], region_bytes: int, last_cache: int
) -> MatrixPlan:
    """All paths of a machine from the chosen CPUs. Raises MachineError if no node has one."""
    cpus = [
        (node.id, tuple(cpu for cpu in chosen if cpu in node.cpus))
        for node in machine.nodes
        if set(chosen) & set(node.cpus)
    ]
    if not cpus:
        raise MachineError(
            "this process may use no CPU of any memory node", "start it without taskset"
        )
    array_bytes = max(MIN_ARRAY_BYTES, 4 * last_cache // 4096 * 4096)
    return MatrixPlan(tuple(cpus), tuple(memory_nodes(machine)), region_bytes, array_bytes)


def measure(session: Session, plan: MatrixPlan, effort: Effort) -> MatrixResult:
    """Measure all paths."""
    samples, _ = session.repeat("memory nodes", "", plan, effort, label=_named)
    return MatrixResult(
        region_bytes=plan.region_bytes, points=list(_points(session, plan, samples))
    )


def _points(
    session: Session, plan: MatrixPlan, samples: Samples[NodePath]
) -> Iterator[MatrixPoint]:
    for node, cpus in plan.cpus:
        for memory in plan.memories:
            load, read, write = (
                median(samples.of(NodePath(node, memory, what))) for what in ("load", _READ, _WRITE)
            )
            yield MatrixPoint(
                cpu_node=node,
                memory_node=memory,
                cpus=list(cpus),
                **session.figures(
                    tier_of(memory),
                    latency_ns=load,
                    read_bandwidth_bytes_per_s=read,
                    write_bandwidth_bytes_per_s=write,
                ),
            )
