"""Knees of a latency curve: the sizes of the caches and buffers behind it.

Random accesses to a region of R bytes hit a buffer of K bytes with probability min(1, K/R). So the
latency is a sum of terms ``rise * max(0, 1 - (K/R)**p)``, one for each buffer, above the first
plateau. p is 1 under random accesses; a cyclic walk thrashes a cache, and its rise is steeper. The
terms are fitted by least squares of relative residuals, their number is chosen by an information
criterion, and the interval of a K is its profile likelihood interval. The result is deterministic:
the same curve always gives the same knees.

A knee is a cache, another buffer of data, or the reach of a TLB.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearfar.records.figures import Provenance
from nearfar.records.results import Knee

FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int_]]

MIN_REGIONS = 6
#: A smaller rise, relative to the plateau before it, does not count as a knee.
MIN_RISE = 0.10
#: Typical relative difference between a curve without noise and the fitted sum of terms.
MODEL_ERROR = 0.02
MAX_KNEES = 6
CANDIDATES_PER_OCTAVE = 12
#: Two knees closer than this factor are not distinguished.
MIN_GAP = 3.0
#: Maximum number of candidates that are tried for a new knee, and of rounds of refinement.
TRIED = 40
MAX_SWEEPS = 10
#: Values of p: 1 for random accesses, and two steeper shapes.
SHAPES = (1.0, 2.0, 6.0)
#: Parameters that a knee adds to the information criterion: K, rise, p, and one for the search.
KNEE_PARAMETERS = 4
#: The search ends after it has added this many knees without an improvement.
MAX_FRUITLESS = 2
#: 95 % quantile of chi squared with two degrees of freedom: a knee's K and its shape p. On
#: simulated curves, 95 % of these intervals contain the true K; with one degree of freedom, 92 %.
PROFILE_95 = 5.99


@dataclass(frozen=True)
class FoundKnee:
    """A knee in bytes with its 95 % interval, and the latencies before and after its rise."""

    region_bytes: int
    low: int
    high: int
    lower_ns: float
    upper_ns: float

    @property
    def ratio(self) -> float:
        """Latency after the rise over latency before it."""
        return self.upper_ns / self.lower_ns

    def record(self, provenance: Provenance) -> Knee:
        """The knee in the format of records."""
        return Knee(
            region_bytes=self.region_bytes,
            low=self.low,
            high=self.high,
            intervals={"region_bytes": (self.low, self.high)},
            provenance={"region_bytes": provenance},
        )


@dataclass(frozen=True)
class _Solution:
    """A set of knees, each the index of a candidate, and the rise of each in nanoseconds."""

    chosen: tuple[int, ...]
    plateau: float
    rises: FloatArray
    misfit: float


class _Curve:
    """One curve with the terms of all candidates, weighted to relative residuals."""

    def __init__(self, regions: FloatArray, latencies: FloatArray) -> None:
        self.regions = regions
        first, last = regions[1], regions[-2]
        count = max(2, round(np.log2(last / first) * CANDIDATES_PER_OCTAVE) + 1)
        sizes = np.geomspace(first, last, count)
        self.sizes = np.tile(sizes, len(SHAPES))
        self.shapes = np.repeat(SHAPES, len(sizes))
        self.weights = 1 / latencies
        self.terms = self._terms_at(regions, np.arange(self.sizes.size)) * self.weights[:, None]
        self.goal = np.ones_like(latencies)

    def _terms_at(self, regions: FloatArray, chosen: IntArray) -> FloatArray:
        """The fraction of a candidate's rise at a region: rows are regions, columns candidates."""
        ratio = self.sizes[chosen] / regions[:, None]
        shares: FloatArray = np.maximum(0.0, 1 - ratio ** self.shapes[chosen])
        return shares

    def level(self, solution: _Solution, region: float) -> float:
        """The fitted latency at a region."""
        terms = self._terms_at(np.array([region]), np.array(solution.chosen, dtype=int))
        return float(solution.plateau + terms[0] @ solution.rises)

    def solve(self, chosen: Sequence[int]) -> _Solution:
        """Least squares for the plateau and the rises."""
        columns = np.column_stack([self.weights, self.terms[:, list(chosen)]])
        found: FloatArray = np.linalg.lstsq(columns, self.goal, rcond=None)[0].astype(np.float64)
        rest = self.goal - columns @ found
        return _Solution(tuple(chosen), float(found[0]), found[1:], float(rest @ rest))

    def misfits_with_one_more(self, others: Sequence[int]) -> FloatArray:
        """The sum of squares with each candidate added; infinite for an unusable candidate."""
        columns = np.column_stack([self.weights, self.terms[:, list(others)]])
        basis = np.linalg.qr(columns)[0]
        rest = self.goal - basis @ (basis.T @ self.goal)
        fresh = self.terms - basis @ (basis.T @ self.terms)
        norms = np.einsum("ij,ij->j", fresh, fresh)
        along = rest @ fresh
        usable = (norms > 1e-9 * np.einsum("ij,ij->j", self.terms, self.terms)) & (along > 0)
        for other in others:
            gap = self.sizes / self.sizes[other]
            usable &= np.maximum(gap, 1 / gap) >= MIN_GAP
        gains = np.where(usable, along, 0.0) ** 2 / np.where(usable, norms, 1.0)
        return np.where(usable, rest @ rest - gains, np.inf)

    def best_with_one_more(self, others: Sequence[int]) -> _Solution | None:
        """The solution with the best candidate added, if all rises are positive; otherwise None."""
        misfits = self.misfits_with_one_more(others)
        for candidate in np.argsort(misfits)[:TRIED]:
            if not np.isfinite(misfits[candidate]):
                break
            solution = self.solve([*others, int(candidate)])
            if solution.plateau > 0 and np.all(solution.rises > 0):
                return solution
        return None

    def refine(self, solution: _Solution) -> _Solution:
        """Move one knee at a time to its best position, until none moves."""
        for _ in range(MAX_SWEEPS):
            before = solution.misfit
            for knee in sorted(solution.chosen):
                others = [other for other in solution.chosen if other != knee]
                moved = self.best_with_one_more(others)
                if moved and moved.misfit < solution.misfit:
                    solution = moved
            if solution.misfit > before * (1 - 1e-6):
                break
        return solution

    def doubt(self, misfit: float) -> float:
        """The deviance: twice the negative log-likelihood, up to a constant."""
        count = self.regions.size
        return count * math.log(MODEL_ERROR**2 + misfit / count)

    def price(self, solution: _Solution) -> float:
        """Bayes' information criterion: the deviance plus the cost of each knee."""
        costs = KNEE_PARAMETERS * len(solution.chosen) * math.log(self.regions.size)
        return self.doubt(solution.misfit) + costs

    def worth_it(self, solution: _Solution) -> bool:
        """Whether each knee raises the latency by at least the threshold."""
        if not solution.chosen:
            return True
        shares = self._terms_at(self.regions[-1:], np.array(solution.chosen))[0]
        lower = [self.level(solution, self.sizes[knee]) for knee in solution.chosen]
        return bool(np.all(solution.rises * shares >= MIN_RISE * np.array(lower)))

    def best(self) -> _Solution:
        """Add one knee at a time and refine all; return the solution with the lowest criterion."""
        solution = best = self.solve([])
        while len(solution.chosen) < min(MAX_KNEES, len(best.chosen) + MAX_FRUITLESS):
            added = self.best_with_one_more(solution.chosen)
            if added is None:
                break
            solution = self.refine(added)
            if self.worth_it(solution) and self.price(solution) < self.price(best):
                best = solution
        return best

    def interval(self, solution: _Solution, knee: int) -> tuple[float, float]:
        """The profile likelihood interval of a size, at least one step of the grid wide."""
        others = [other for other in solution.chosen if other != knee]
        misfits = self.misfits_with_one_more(others)
        limit = self.doubt(solution.misfit) + PROFILE_95
        likely = [
            size
            for size, misfit in zip(self.sizes, misfits, strict=True)
            if np.isfinite(misfit) and self.doubt(misfit) <= limit
        ]
        size = self.sizes[knee]
        below = self.regions[self.regions <= size].max()
        above = self.regions[self.regions > size].min()
        return min([*likely, below]), max([*likely, above])


def find(regions: Sequence[float], latencies_ns: Sequence[float]) -> list[FoundKnee]:
    """Knees of one curve, ascending; empty for a curve with one plateau.

    ``regions`` are in bytes, ascending and distinct, at least MIN_REGIONS. The noise of the
    latencies is estimated from the curve itself. Raises ValueError for other input.
    """
    where, what = np.array(regions, dtype=float), np.array(latencies_ns, dtype=float)
    if not where.size == what.size >= MIN_REGIONS:
        raise ValueError(f"knees need {MIN_REGIONS} regions or more, each with its latency")
    if np.any(np.diff(where) <= 0) or np.any(what <= 0) or not np.all(np.isfinite(what)):
        raise ValueError("knees need ascending regions and positive latencies")
    curve = _Curve(where, what)
    solution = curve.best()
    chosen = sorted(solution.chosen, key=lambda knee: curve.sizes[knee])
    ends = [*(curve.sizes[knee] for knee in chosen), where[-1]][1:]
    found = []
    for knee, end in zip(chosen, ends, strict=True):
        low, high = curve.interval(solution, knee)
        size = curve.sizes[knee]
        found.append(
            FoundKnee(
                round(size),
                round(low),
                round(high),
                curve.level(solution, size),
                curve.level(solution, end),
            )
        )
    return found
