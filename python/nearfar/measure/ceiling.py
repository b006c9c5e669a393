"""Physical limits of CPUs: a figure beyond them is a measurement error.

The limits are those of the fastest x86-64 cores with a margin: two 64-byte loads a cycle and a
first-level cache of four cycles (Intel and AMD optimization manuals, 2024), at 8 GHz.
"""

from __future__ import annotations

from nearfar.errors import MachineError

HIGHEST_CLOCK_HZ = 8e9
MAX_BYTES_PER_S = 2 * 64 * HIGHEST_CLOCK_HZ
MIN_LATENCY_NS = 3 / HIGHEST_CLOCK_HZ * 1e9


def check_rate(bytes_per_s: float, threads: int, what: str) -> float:
    """Return the rate unchanged. Raises MachineError if ``threads`` cores cannot reach it."""
    if bytes_per_s > threads * MAX_BYTES_PER_S:
        raise MachineError(
            f"{what} moved {bytes_per_s / 1e9:.0f} GB/s with {threads} threads, which no processor "
            "can: its loop or the clock is broken",
            "check the clock source with `nearfar doctor`, and report this",
        )
    return bytes_per_s


def check_latency(latency_ns: float, chains: int, what: str) -> float:
    """Return the latency unchanged. Raises MachineError if ``chains`` chases cannot reach it."""
    if latency_ns * chains < MIN_LATENCY_NS:
        raise MachineError(
            f"{what} took {latency_ns:.3g} ns a load, which no processor can: its loop or the "
            "clock is broken",
            "check the clock source with `nearfar doctor`, and report this",
        )
    return latency_ns
