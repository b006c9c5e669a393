"""Choose near sites under a budget of bytes: by density, and exactly if feasible.

    maximise  Σ benefit_i · x_i,  x_i ∈ {0, 1}
    subject to  Σ bytes_i(t) · x_i ≤ budget  in every part t of the run

Sizes are given over time, because sites with disjoint lifetimes share near memory. The exact
solution is that of HiGHS (branch and cut), with a gap of 0.1 %.
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

#: Time limit of the exact search of one budget, in seconds.
_PATIENCE_S = 2.0
_GAP = 1e-3
#: Fraction of the total savings that a knee must reach.
_MIN_SAVED = 0.5
#: A smaller slowdown is negligible.
_NO_LOSS = 1e-4


@dataclass(frozen=True)
class Choice:
    """Near sites, by index; ``exact`` if no choice is better within the gap."""

    near: frozenset[int]
    exact: bool


def by_density(benefit: Sequence[float], sizes: Sizes, budget: float) -> frozenset[int]:
    """The sites with most benefit a byte (of their peak) that fit, in this order."""
    import numpy as np

    peaks = sizes.max(axis=1, initial=0.0)
    order = sorted(
        (i for i, gain in enumerate(benefit) if gain > 0),
        key=lambda i: -benefit[i] / max(float(peaks[i]), 1.0),
    )
    used = np.zeros(sizes.shape[1])
    near = set()
    for i in order:
        if np.all(used + sizes[i] <= budget):
            used += sizes[i]
            near.add(i)
    return frozenset(near)


def exactly(benefit: Sequence[float], sizes: Sizes, budget: float) -> Choice:
    """The best choice, or that of ``by_density`` if the search timed out."""
    import numpy as np

    dense = by_density(benefit, sizes, budget)
    gains = [i for i, gain in enumerate(benefit) if gain > 0]
    if len(dense) == len(gains):
        return Choice(dense, exact=True)
    chosen = sizes[gains]
    parts = np.unique(chosen, axis=1).T  # parts of the run with equal sizes are one constraint
    scale = max(budget, 1.0)
    gain = np.array([benefit[i] for i in gains])
    taken, optimal = _search(gain / gain.sum(), parts / scale, budget / scale)
    near = frozenset(gains[i] for i in taken)
    if not fits(near, sizes, budget) or gain_of(near, benefit) < gain_of(dense, benefit):
        near = dense
    return Choice(near, exact=optimal)


def _search(gain: Sizes, rows: Sizes, most: float) -> tuple[list[int], bool]:
    """The set of columns with the largest gain whose rows each sum to at most ``most``, and whether
    it is proven to be the best; no columns if none were found in time."""
    import numpy as np
    from highspy import Highs, HighsLp, HighsModelStatus, HighsVarType, MatrixFormat

    height, width = rows.shape
    model = HighsLp()
    model.num_col_, model.num_row_ = width, height
    model.col_cost_ = -gain
    model.col_lower_, model.col_upper_ = np.zeros(width), np.ones(width)
    model.integrality_ = [HighsVarType.kInteger] * width
    model.row_lower_, model.row_upper_ = np.full(height, -np.inf), np.full(height, most)
    model.a_matrix_.format_ = MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.arange(height + 1) * width
    model.a_matrix_.index_ = np.tile(np.arange(width), height)
    model.a_matrix_.value_ = rows.ravel()
    with _silent():
        solver = Highs()  # type: ignore[no-untyped-call]
        solver.setOptionValue("time_limit", _PATIENCE_S)
        solver.setOptionValue("mip_rel_gap", _GAP)
        solver.passModel(model)
        solver.run()
        optimal = solver.getModelStatus() == HighsModelStatus.kOptimal
        solution = solver.getSolution()
    taken = np.flatnonzero(np.asarray(solution.col_value) > 0.5) if solution.value_valid else ()
    return [int(i) for i in taken], optimal


@contextmanager
def _silent() -> Iterator[None]:
    """Redirect standard output: HiGHS writes to it in any case, and it may hold a JSON document."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # flush C's buffer
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def gain_of(near: frozenset[int], benefit: Sequence[float]) -> float:
    """Sum of the gains of the near sites."""
    return sum(benefit[i] for i in near)


def fits(near: frozenset[int], sizes: Sizes, budget: float) -> bool:
    """Whether a choice stays within the budget at all times."""
    return max_bytes(near, sizes) <= budget


def max_bytes(near: frozenset[int], sizes: Sizes) -> float:
    """Peak bytes of a choice."""
    return float(sizes[sorted(near)].sum(axis=0).max()) if near else 0.0


def knee(budgets: Sequence[float], slowdowns: Sequence[float]) -> int:
    """The point of a falling curve that is farthest below the line between its ends, of those that
    save at least half of what the end saves: an earlier bend with little savings is not useful. If
    all is saved at the end, that is the end.

    Satopaa et al., "Finding a 'Kneedle' in a Haystack", ICDCS Workshops 2011.
    """
    width = budgets[-1] - budgets[0]
    height = slowdowns[0] - slowdowns[-1]
    if width <= 0 or height <= _NO_LOSS:
        return 0
    saved = [(slowdowns[0] - slowdown) / height for slowdown in slowdowns]
    below = {
        i: saved[i] - (budget - budgets[0]) / width
        for i, budget in enumerate(budgets)
        if saved[i] >= _MIN_SAVED
    }
    return max(below, key=below.__getitem__)
