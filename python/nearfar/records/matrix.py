"""Section ``matrix``: speed between the CPUs of each node and the memory of each node."""

from __future__ import annotations

from pydantic import Field

from nearfar.records.figures import Count, FigureModel, Positive, Size


class MatrixPoint(FigureModel):
    """From the CPUs of one node to the memory of one node."""

    cpu_node: Count
    memory_node: Count
    cpus: list[int] = Field(min_length=1, description="that read and write together")
    latency_ns: Positive = Field(description="a random load of one CPU")
    read_bandwidth_bytes_per_s: Positive
    write_bandwidth_bytes_per_s: Positive = Field(description="non-temporal stores")


class MatrixResult(FigureModel):
    """All paths between nodes with CPUs and nodes with memory."""

    region_bytes: Size
    points: list[MatrixPoint] = Field(min_length=1)

    def point(self, cpu_node: int, memory_node: int) -> MatrixPoint | None:
        """The path between two nodes."""
        for point in self.points:
            if (point.cpu_node, point.memory_node) == (cpu_node, memory_node):
                return point
        return None

    def nearest(self, memory_node: int) -> MatrixPoint | None:
        """The path to a memory from the CPUs that are nearest to it."""
        paths = [point for point in self.points if point.memory_node == memory_node]
        return min(paths, key=lambda point: point.latency_ns, default=None)
