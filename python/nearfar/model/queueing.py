"""A closed queue: threads alternate between independent work and one shared resource.

Equation: exact mean value analysis of one class; n threads, each away for z, then served for s:
  r(k) = s·(1 + q(k-1)),  x(k) = k / (z + r(k)),  q(k) = x(k)·r(k).
Source: Reiser and Lavenberg's mean value analysis.
Limits: exponential service or processor sharing, all threads alike.
"""

from __future__ import annotations

from collections.abc import Callable


def cycle_over_threads(away_s: float, served_s: float, threads: int) -> float:
    """Seconds per completed visit of the whole system, 1 / x(n); falls with threads down to s."""
    queued = 0.0
    throughput = 0.0
    for running in range(1, threads + 1):
        residence = served_s * (1 + queued)
        throughput = running / (away_s + residence)
        queued = throughput * residence
    return 1 / throughput


def rising_root(f: Callable[[float], float], low: float, high: float) -> float:
    """Root of an increasing function by bisection; the nearer end if there is none."""
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
    return high
