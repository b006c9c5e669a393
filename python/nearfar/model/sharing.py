"""Bandwidth of two sides that copy concurrently, from the bandwidth of each alone.

Equation: a closed queue with two classes of customers, near and far threads, at one memory. A byte
takes a thread of class k the time z_k by itself and is then served for s; by exact mean value
analysis, with n = (d, v) threads and one of class k taken away in n - 1_k,
  r_k(n) = s·(1 + q(n - 1_k)),  x_k(n) = n_k / (z_k + r_k(n)),  q(n) = Σ x_k(n)·r_k(n).
s and z_near are those with which d near threads alone, and d + v of them alone, reach the speeds
that were measured of them; z_far that with which v far threads alone reach theirs. Where the two
memories have nothing in common, each side keeps what it has alone.
Source: Reiser and Lavenberg's mean value analysis; that near and far memory share a capacity is
what the published competition tables show (their sums stay at the near memory's own peak).
Limits: exponential service or processor sharing; a far memory with a limit of its own and more far
threads than were measured; at least a thread on either side. Nothing is fitted to competition.
"""

from __future__ import annotations

from dataclasses import dataclass

from nearfar.model.queueing import cycle_over_threads, rising_root

#: Two speeds closer than this are equal: both sides together then reach no more than that.
_SAME = 1e-9


@dataclass(frozen=True)
class Alone:
    """Bytes/s of each side alone, and of near threads as many as on both sides."""

    near: float
    far: float
    together: float


def at_once(alone: Alone, near_threads: int, far_threads: int, *, shared: bool) -> Alone:
    """Bandwidths of both sides at once; ``together`` is their sum."""
    near, far = alone.near, alone.far
    if shared:
        near, far = _two_classes(alone, near_threads, far_threads)
    return Alone(near, far, near + far)


def _two_classes(alone: Alone, near_threads: int, far_threads: int) -> tuple[float, float]:
    served = _served(alone, near_threads, near_threads + far_threads)
    away = (
        _away(alone.near, served, near_threads),
        _away(alone.far, served, far_threads),
    )
    queued: dict[tuple[int, int], float] = {(0, 0): 0.0}
    speeds = (0.0, 0.0)
    for near in range(near_threads + 1):
        for far in range(far_threads + 1):
            if near + far == 0:
                continue
            waits = (
                served * (1 + queued[near - 1, far]) if near else 0.0,
                served * (1 + queued[near, far - 1]) if far else 0.0,
            )
            speeds = (
                near / (away[0] + waits[0]) if near else 0.0,
                far / (away[1] + waits[1]) if far else 0.0,
            )
            queued[near, far] = speeds[0] * waits[0] + speeds[1] * waits[1]
    return speeds


def _away(speed: float, served: float, threads: int) -> float:
    """Seconds a byte outside the queue with which this number of threads alone reaches a speed."""
    return rising_root(
        lambda away: cycle_over_threads(away, served, threads) - 1 / speed, 0.0, threads / speed
    )


def _served(alone: Alone, near_threads: int, threads: int) -> float:
    """Seconds a byte in the queue, from the gain of near threads when their number grows."""
    longest = 1 / max(alone.near, alone.together)
    if alone.together >= alone.near * threads / near_threads * (1 - _SAME):
        return 0.0

    def off(served: float) -> float:
        away = _away(alone.near, served, near_threads)
        return cycle_over_threads(away, served, threads) - 1 / alone.together

    return rising_root(off, 0.0, longest)
