"""Memory nodes: latency and bandwidth from the CPUs of each node to the memory of each node."""

from __future__ import annotations

from nearfar.records.matrix import MatrixResult
from nearfar.report.html.section import Cell, Context, Section, Table, figure_cell
from nearfar.report.wording import count, say
from nearfar.units import format_size

_LATENCY, _READ, _WRITE = (
    "latency_ns",
    "read_bandwidth_bytes_per_s",
    "write_bandwidth_bytes_per_s",
)
COLUMNS = ["CPUs of node", "Memory of node", "Latency", "Reads", "Writes"]


def section(context: Context) -> Section | None:
    """Return the section, or None if nodes were not measured, as on machines with one node."""
    result = context.run.sections.matrix
    if result is None:
        return None
    rows = [
        [
            Cell(str(point.cpu_node)),
            Cell(str(point.memory_node)),
            *(figure_cell(point, key) for key in (_LATENCY, _READ, _WRITE)),
        ]
        for point in result.points
    ]
    table = Table(COLUMNS, rows, "Latency and bandwidth by node", frozenset({0, 1, 2, 3, 4}))
    return Section("matrix", "Memory nodes", finding(result), [], [table], notes(result))


def finding(result: MatrixResult) -> str:
    """State the fastest and the slowest path."""
    fast = min(result.points, key=lambda point: point.latency_ns)
    slow = max(result.points, key=lambda point: point.latency_ns)
    if len(result.points) == 1:
        return (
            f"The CPUs of node {fast.cpu_node} wait {say(fast, _LATENCY)} for their memory and "
            f"read {say(fast, _READ)}; this machine has no other memory node."
        )
    return (
        f"A load takes {say(fast, _LATENCY)} from node {fast.cpu_node} to the memory of node "
        f"{fast.memory_node}, and {say(slow, _LATENCY)} from node {slow.cpu_node} to that of node "
        f"{slow.memory_node}; reads reach {say(fast, _READ)} and {say(slow, _READ)}."
    )


def notes(result: MatrixResult) -> list[str]:
    """Say what was timed, and with how many CPUs."""
    most = max(len(point.cpus) for point in result.points)
    return [
        f"Latency: one CPU, random loads over {format_size(result.region_bytes)}, on huge pages if "
        f"the kernel gives them. Bandwidth: all usable CPUs of the node together, at most "
        f"{count(most, 'CPU')}; writes are non-temporal stores. A memory that these CPUs cannot "
        "saturate may be faster."
    ]
