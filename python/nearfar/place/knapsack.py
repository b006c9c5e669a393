"""Which sites stay near under a budget of bytes: by density, and exactly where it is feasible.

    maximise  Σ benefit_i · x_i,  x_i ∈ {0, 1}
    subject to  Σ bytes_i(t) · x_i ≤ budget  in every part t of the run

Sites that live one after the other share near memory, which is why sizes are told over time. The
exact answer is that of HiGHS (branch and cut, by way of SciPy's milp), with a gap of 0.1 %.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Sizes = NDArray[np.float64]

#: Longest that the exact search of one budget may take, in seconds.
_PATIENCE_S = 2.0
_GAP = 1e-3


@dataclass(frozen=True)
class Choice:
    """Sites that stay near, by place in the list; ``exact`` if none are better within the gap."""

    near: frozenset[int]
    exact: bool


def by_density(benefit: Sequence[float], sizes: Sizes, budget: float) -> frozenset[int]:
    """The sites with most benefit a byte (of their peak) that still fit, one after the other."""
    import numpy as np

    peaks = sizes.max(axis=1, initial=0.0)
    order = sorted(
        (i for i, gain in enumerate(benefit) if gain > 0),
        key=lambda i: -benefit[i] / max(peaks[i], 1.0),
    )
    used = np.zeros(sizes.shape[1])
    near = set()
    for i in order:
        if np.all(used + sizes[i] <= budget):
            used += sizes[i]
            near.add(i)
    return frozenset(near)


def exactly(benefit: Sequence[float], sizes: Sizes, budget: float) -> Choice:
    """The best choice, or that of ``by_density`` where the search ran out of time."""
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp

    dense = by_density(benefit, sizes, budget)
    gains = [i for i, gain in enumerate(benefit) if gain > 0]
    if len(dense) == len(gains):
        return Choice(dense, exact=True)
    chosen = sizes[gains]
    parts = np.unique(chosen, axis=1).T  # parts of the run with the same sizes are one condition
    scale = max(budget, 1.0)
    with _silent():
        found = milp(
            -np.array([benefit[i] for i in gains]) / sum(benefit[i] for i in gains),
            integrality=np.ones(len(gains), dtype=np.int64),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(parts / scale, ub=np.full(len(parts), budget / scale)),
            options={"time_limit": _PATIENCE_S, "mip_rel_gap": _GAP},
        )
    if found.x is None:
        return Choice(dense, exact=False)
    near = frozenset(i for i, x in zip(gains, found.x, strict=True) if x > 0.5)
    if not fits(near, sizes, budget) or gain_of(near, benefit) < gain_of(dense, benefit):
        near = dense
    return Choice(near, exact=found.status == 0)


@contextmanager
def _silent() -> Iterator[None]:
    """HiGHS writes to standard output, whatever it is asked; a JSON document may be there."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # what C has buffered meanwhile
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def gain_of(near: frozenset[int], benefit: Sequence[float]) -> float:
    """What a choice gains, site by site."""
    return sum(benefit[i] for i in near)


def fits(near: frozenset[int], sizes: Sizes, budget: float) -> bool:
    """Whether a choice stays within the budget all the time."""
    return most_bytes(near, sizes) <= budget


def most_bytes(near: frozenset[int], sizes: Sizes) -> float:
    """Most bytes that a choice holds at once."""
    return float(sizes[sorted(near)].sum(axis=0).max()) if near else 0.0


def knee(budgets: Sequence[float], slowdowns: Sequence[float]) -> int:
    """The point of a falling curve that lies farthest below the line between its ends.

    Satopaa et al., "Finding a 'Kneedle' in a Haystack", ICDCS Workshops 2011.
    """
    width = budgets[-1] - budgets[0]
    height = slowdowns[0] - slowdowns[-1]
    if width <= 0 or height <= 0:
        return 0
    below = [
        1 - (x - budgets[0]) / width - (y - slowdowns[-1]) / height
        for x, y in zip(budgets, slowdowns, strict=True)
    ]
    return max(range(len(below)), key=below.__getitem__)
