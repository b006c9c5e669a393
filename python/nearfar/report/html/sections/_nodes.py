"""Latency between nodes: from the CPUs of each to the memory of each."""

from __future__ import annotations

from typing import NamedTuple

from nearfar.machine.model import Machine, Node
from nearfar.records.figures import Origin
from nearfar.records.matrix import MatrixPoint, MatrixResult
from nearfar.records.results import LatencyCurve, LatencyPoint, LatencyResult
from nearfar.report.html import headline
from nearfar.report.html.section import Cell, Table, figure_cell, heated
from nearfar.report.wording import HUGE_PAGES, format_quantity, plain_tier


class NodeMeasurements(NamedTuple):
    """Latencies between nodes in a record: of all pairs, or curves of some tiers."""

    ways: MatrixResult | None = None
    curves: LatencyResult | None = None


def latency_matrix(machine: Machine, result: NodeMeasurements) -> list[Table]:
    """Return the matrix of a machine with several nodes: measured if the record has it, else what
    the firmware claims for the nearest CPUs, else only the distance."""
    if len(machine.nodes) < 2:
        return []
    able = [node for node in machine.nodes if not node.cpuless]
    rows = [[Cell(f"CPUs of node {start.id}"), *_row(machine, start, result)] for start in able]
    heads = ["", *(f"Node {node.id}{_kind(node)}" for node in machine.nodes)]
    return [
        Table(
            heads,
            rows,
            "Latency between nodes",
            frozenset(range(1, len(heads))),
            lead="A load from CPUs of a row's node to memory of a column's node, where this run "
            "measured it; else what the firmware claims. Distances are the kernel's (SLIT): 10 is "
            "local.",
        )
    ]


def _kind(node: Node) -> str:
    return f" ({node.subtype})" if node.subtype else " (no CPUs)" if node.cpuless else ""


def _row(machine: Machine, start: Node, result: NodeMeasurements) -> list[Cell]:
    cells = [_cell(machine, start, end, result) for end in machine.nodes]
    values = [value for value, _ in cells if value]
    return [
        heated(cell, value, min(values), max(values)) if value else cell for value, cell in cells
    ]


def _cell(machine: Machine, start: Node, end: Node, result: NodeMeasurements) -> tuple[float, Cell]:
    """Return a value, 0 if there is none, and its cell."""
    distance = start.distances.get(end.id)
    detail = "" if distance is None else f"distance {distance}"
    point = _point(machine, start, end, result)
    if point is not None:
        return point.latency_ns, figure_cell(point, "latency_ns")
    if end.read_latency_ns and _is_nearest(machine, start, end):
        text = format_quantity("read_latency_ns", end.read_latency_ns)
        return end.read_latency_ns, Cell(text, detail, Origin.CLAIMED)
    return 0.0, Cell("–", detail)


def _point(
    machine: Machine, start: Node, end: Node, result: NodeMeasurements
) -> MatrixPoint | LatencyPoint | None:
    way = result.ways.point(start.id, end.id) if result.ways else None
    if way is not None:
        return way
    curve = _curve(machine, start, end, result.curves) if result.curves else None
    return headline.largest(curve) if curve else None


def _curve(machine: Machine, start: Node, end: Node, result: LatencyResult) -> LatencyCurve | None:
    """Return the curve of a CPU of one node on the other node, of huge pages if there is one."""
    near = next((tier.node for tier in machine.tiers if tier.spec == "dram"), None)
    specs = {f"numa:{end.id}", *(["dram"] if near == end.id else [])}
    own = [
        curve
        for curve in result.curves
        if curve.cpu in start.cpus and plain_tier(curve.tier) in specs
    ]
    return next((curve for curve in own if curve.pages in HUGE_PAGES), own[0] if own else None)


def _is_nearest(machine: Machine, start: Node, end: Node) -> bool:
    """Whether no other node with CPUs is nearer: firmware describes the nearest only."""
    distances = [n.distances.get(end.id, 255) for n in machine.nodes if not n.cpuless]
    return start.distances.get(end.id, 255) == min(distances)
