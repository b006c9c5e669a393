"""A measured quantity by number of threads, and its roughness.

Equation: straight lines in ln y over ln t between the points. Roughness: twice the root mean square
of what each inner point lies off the line between its neighbors; too much where a curve bends.
Source: none needed. Limits: nothing outside of the measured thread counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nearfar.errors import BadInputError
from nearfar.model import tables


@dataclass(frozen=True)
class Curve:
    """Values by threads; ``name`` says in errors where they come from."""

    name: str
    points: Mapping[int, float]

    def at(self, threads: int) -> float:
        """The value at a thread count, interpolated in logarithms. Raises BadInputError outside."""
        if threads in self.points:
            return self.points[threads]
        if not min(self.points) <= threads <= max(self.points):
            raise BadInputError(
                f"{self.name} has {min(self.points)} to {max(self.points)} threads, and "
                f"{threads} are asked for",
                "measure that number of threads, or ask for fewer with --threads",
            )
        return _between(self.points, sorted(self.points), threads)

    def roughness(self, up_to: int) -> float:
        """Relative half-width of the points up to a thread count; 0 with fewer than three."""
        threads = [t for t in sorted(self.points) if t <= up_to]
        off = [
            np.log(self.points[t] / _between(self.points, [*threads[:i], *threads[i + 1 :]], t))
            for i, t in enumerate(threads)
            if 0 < i < len(threads) - 1
        ]
        return 2 * float(np.sqrt(np.mean(np.square(off)))) if off else 0.0


def _between(points: Mapping[int, float], threads: Sequence[int], at: int) -> float:
    logs = np.log([points[t] for t in threads])
    return float(np.exp(np.interp(np.log(at), np.log(threads), logs)))


def read_curves(
    path: str | Path, columns: Sequence[str], *, scale: float = 1.0
) -> dict[str, Curve]:
    """Columns of a table by ``threads``, times ``scale``. Raises BadInputError naming the cell."""
    rows = tables.without_repeats(
        tables.read_rows(path, ("threads", *columns)), ("threads",), columns
    )
    return {
        column: Curve(
            f"{path}, column {column},",
            {row.count_of("threads"): scale * row.number_of(column) for row in rows},
        )
        for column in columns
    }
