"""Claims of firmware and kernel on memory nodes, compared with measured speeds.

The only checks that need a measurement, which the caller passes: ``nearfar doctor --tiers``. Each
wrong claim is a finding of its own, with its consequence and what corrects it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

from nearfar.machine.doctor.findings import note, ok, warning
from nearfar.machine.interleave_weights import WEIGHTS, weights_of
from nearfar.machine.model import Machine, Node
from nearfar.machine.root import Root
from nearfar.machine.tier_claims import DEMOTION, TierClaims, read_tier_claims
from nearfar.records.matrix import MatrixPoint, MatrixResult
from nearfar.records.run import Finding
from nearfar.units import format_bandwidth, format_time

#: A claim relative to the reference node may differ from the measurement by this factor, and by
#: this one in absolute terms: firmware states peaks, and idle figures of the medium alone.
_RELATIVE, _ABSOLUTE = 1.5, 3.0
#: Factors of latency or bandwidth from which on two memories are not equally fast.
_SLOWER, _NARROWER = 1.3, 1.5
#: Factor by which a ratio of distances may differ from that of latencies.
_DISTANCES = 2.5

#: A store that misses the caches first reads its line, so that the program waits for a read.
_FIGURES = (
    ("read latency", "read_latency_ns", "latency_ns"),
    ("write latency", "write_latency_ns", "latency_ns"),
    ("read bandwidth", "read_bandwidth_bytes_per_s", "read_bandwidth_bytes_per_s"),
    ("write bandwidth", "write_bandwidth_bytes_per_s", "write_bandwidth_bytes_per_s"),
)
_TABLES = "sys/firmware/acpi/tables"
_WHY_FIGURES = "the kernel derives memory tiers and interleave weights from these figures"


def override(table: str) -> str:
    """The command that extracts a table of the firmware, and where a corrected one goes."""
    return (
        f"sudo cat /{_TABLES}/{table} > {table}.dat && iasl -d {table}.dat; correct {table}.dsl, "
        f"then `iasl -sa {table}.dsl` and put {table}.aml as kernel/firmware/acpi/ in front of the "
        "initial RAM disk (kernel documentation: upgrading ACPI tables via initrd)"
    )


@dataclass(frozen=True)
class _Compared:
    """A machine, its claims, and the measured path to each memory node from its nearest CPUs."""

    machine: Machine
    claims: TierClaims
    matrix: MatrixResult
    paths: dict[int, MatrixPoint]

    def pairs(self) -> Iterator[tuple[MatrixPoint, MatrixPoint]]:
        """The paths to any two memories, the faster one first."""
        for pair in combinations(self.paths.values(), 2):
            fast, slow = sorted(pair, key=lambda path: (path.latency_ns, path.memory_node))
            yield fast, slow


def examine_claims(machine: Machine, root: Root, matrix: MatrixResult) -> list[Finding]:
    """Compare all claims with the measured speeds of all paths between nodes."""
    nodes = [node.id for node in machine.nodes if node.size_bytes]
    paths = {node: path for node in nodes if (path := matrix.nearest(node)) is not None}
    given = _Compared(machine, read_tier_claims(root), matrix, paths)
    return [finding for check in CHECKS for finding in check(given)]


def _hmat(given: _Compared) -> Iterator[Finding]:
    """Each figure of HMAT or CDAT, by node."""
    nodes = [node for node in given.machine.nodes if node.id in given.paths]
    reference = next((node for node in nodes if not node.cpuless), None)
    seen = False
    for node in nodes:
        for name, claimed, measured in _FIGURES:
            claim = getattr(node, claimed)
            if claim is None or reference is None:
                continue
            seen = True
            base = getattr(reference, claimed) if node is not reference else None
            yield _figure(given, node, reference, (name, claimed, measured), base)
    if not seen:
        yield note(
            "HMAT",
            "the firmware claims no latency and no bandwidth of any node",
            "the kernel puts all memory into one tier, unless a driver says otherwise",
        )


def _figure(
    given: _Compared, node: Node, reference: Node, keys: tuple[str, str, str], base: float | None
) -> Finding:
    name, claimed, measured = keys
    claim, found = getattr(node, claimed), getattr(given.paths[node.id], measured)
    text = f"claimed {_shown(claimed, claim)}, measured {_shown(measured, found)}"
    wrong = _factor(claim, found) > _ABSOLUTE
    if base is not None:
        of_claim = claim / base
        of_found = found / getattr(given.paths[reference.id], measured)
        wrong = wrong or _factor(of_claim, of_found) > _RELATIVE
        text += f": {of_claim:.2g} and {of_found:.2g} times that of node {reference.id}"
    check = f"HMAT {name} of node {node.id}"
    return warning(check, text, _WHY_FIGURES, override("HMAT")) if wrong else ok(check, text)


def _shown(key: str, value: float) -> str:
    return format_time(value * 1e-9) if key.endswith("_ns") else format_bandwidth(value)


def _factor(one: float, other: float) -> float:
    return max(one / other, other / one)


def _memory_tiers(given: _Compared) -> Iterator[Finding]:
    """Memories of different speed are in different tiers, the faster one in the lower number."""
    if not given.claims.tiers:
        yield note("memory tiers", "this kernel shows none (Linux 6.1 and later do)")
        return
    for fast, slow in given.pairs():
        numbers = [given.claims.tier_of(path.memory_node) for path in (fast, slow)]
        if numbers[0] is None or numbers[1] is None:
            continue
        yield _tier_pair(given, fast, slow, (numbers[0], numbers[1]))


def _tier_pair(
    given: _Compared, fast: MatrixPoint, slow: MatrixPoint, numbers: tuple[int, int]
) -> Finding:
    a, b = fast.memory_node, slow.memory_node
    check = f"memory tiers of nodes {min(a, b)} and {max(a, b)}"
    speeds = f"node {b} has {_compared(fast, slow)} of node {a}"
    if not is_slower(fast, slow):
        return _equal_memories(check, speeds, numbers)
    if numbers[0] == numbers[1]:
        return warning(
            check,
            f"both in tier {numbers[0]}; measured: {speeds}",
            "the kernel demotes no cold pages between memories of one tier",
            _separate_tier(given.machine, b),
        )
    if numbers[0] > numbers[1]:
        return warning(
            check,
            f"node {b} is in the faster tier, {numbers[1]} before {numbers[0]}; {speeds}",
            "the kernel demotes cold pages to the faster memory, and promotes hot ones to the "
            "slower",
            override("HMAT"),
        )
    if given.claims.demotion is False:
        return note(
            check,
            f"in different tiers ({numbers[0]}, {numbers[1]}), as measured; demotion is off",
            "cold pages stay in the faster memory until it is full, then go to swap",
            f"echo true | sudo tee /{DEMOTION}",
        )
    return ok(check, f"tiers {numbers[0]} and {numbers[1]}; measured: {speeds}")


def _equal_memories(check: str, speeds: str, numbers: tuple[int, int]) -> Finding:
    if numbers[0] != numbers[1]:
        return warning(
            check,
            f"in different tiers ({numbers[0]}, {numbers[1]}); measured: {speeds}",
            "the kernel demotes pages to memory that is not slower, which costs copies only",
            f"echo false | sudo tee /{DEMOTION}",
        )
    return ok(check, f"tiers {numbers[0]} and {numbers[1]}; measured: {speeds}")


def is_slower(fast: MatrixPoint, slow: MatrixPoint) -> bool:
    """Whether the second memory is not as fast as the first one."""
    latency = slow.latency_ns / fast.latency_ns
    bandwidth = fast.read_bandwidth_bytes_per_s / slow.read_bandwidth_bytes_per_s
    return latency >= _SLOWER or bandwidth >= _NARROWER


def _compared(fast: MatrixPoint, slow: MatrixPoint) -> str:
    latency = slow.latency_ns / fast.latency_ns
    bandwidth = slow.read_bandwidth_bytes_per_s / fast.read_bandwidth_bytes_per_s
    return f"{latency:.2g} times the latency and {bandwidth:.2g} times the bandwidth"


def _separate_tier(machine: Machine, node: int) -> str:
    device = next((dax for dax in machine.dax_devices if dax.target_node == node), None)
    if device is None:
        return (
            "boot without efi=nosoftreserve: the memory is a DAX device then, and "
            "`sudo daxctl reconfigure-device --mode=system-ram daxX.Y` gives it a tier of its own"
        )
    again = f"sudo daxctl reconfigure-device --mode=system-ram {device.name}"
    return f"sudo daxctl reconfigure-device --mode=devdax --force {device.name} && {again}"


def _distances(given: _Compared) -> Iterator[Finding]:
    """SLIT: from each node with CPUs, nearer memory has the smaller distance."""
    distances = {node.id: node.distances for node in given.machine.nodes}
    for cpu_node in sorted({point.cpu_node for point in given.matrix.points}):
        paths = [point for point in given.matrix.points if point.cpu_node == cpu_node]
        known = [path for path in paths if path.memory_node in distances.get(cpu_node, {})]
        for one, other in combinations(known, 2):
            fast, slow = sorted((one, other), key=lambda path: path.latency_ns)
            yield _distance_pair(distances[cpu_node], fast, slow)


def _distance_pair(distances: dict[int, int], fast: MatrixPoint, slow: MatrixPoint) -> Finding:
    near, far = distances[fast.memory_node], distances[slow.memory_node]
    ratio = slow.latency_ns / fast.latency_ns
    a, b = sorted((fast.memory_node, slow.memory_node))
    check = f"SLIT distances from node {fast.cpu_node} to {a} and {b}"
    text = (
        f"{near} to node {fast.memory_node} and {far} to node {slow.memory_node}; measured "
        f"{_shown('_ns', fast.latency_ns)} and {_shown('_ns', slow.latency_ns)}"
    )
    reversed_order = ratio >= _SLOWER and near >= far
    if reversed_order or _factor(far / near, ratio) > _DISTANCES:
        return warning(
            check,
            text,
            "where memory is full, the kernel takes pages from the node with the least distance",
            override("SLIT"),
        )
    return ok(check, text)


def _weights(given: _Compared) -> Iterator[Finding]:
    """Weights of interleaving are those of the measured bandwidths."""
    weights = {node: given.claims.weights.get(node) for node in given.paths}
    rates = {node: path.read_bandwidth_bytes_per_s for node, path in given.paths.items()}
    if not given.claims.weights:
        yield note("interleave weights", "this kernel has none (Linux 6.9 and later do)")
        return
    right = weights_of(rates)
    top = max(rates, key=lambda node: rates[node])
    for node, weight in weights.items():
        top_weight = weights[top]
        if node == top or weight is None or top_weight is None:
            continue
        share, of_rates = weight / top_weight, rates[node] / rates[top]
        check = f"interleave weights of nodes {min(node, top)} and {max(node, top)}"
        text = (
            f"{weight} of node {node} for {top_weight} of node {top}: {share:.2g}; measured "
            f"bandwidths {format_bandwidth(rates[node])} and {format_bandwidth(rates[top])}: "
            f"{of_rates:.2g}"
        )
        if _factor(share, of_rates) <= _RELATIVE:
            yield ok(check, text)
            continue
        yield warning(
            check,
            text,
            "weighted interleaving waits for the memory that has too many pages",
            "; ".join(f"echo {right[n]} | sudo tee /{WEIGHTS}/node{n}" for n in sorted(right)),
        )


CHECKS: tuple[Callable[[_Compared], Iterator[Finding]], ...] = (
    _hmat,
    _memory_tiers,
    _distances,
    _weights,
)
