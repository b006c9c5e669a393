"""Latency curves of memories with known buffers, by playing accesses one by one.

Nothing here knows a formula of the curve: lines are looked up in buffers that replace a random
line, and what the accesses took is averaged. So it can judge the fit in ``nearfar.measure.knees``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise

KIB = 1 << 10
MIB = 1 << 20

#: A region is played with at most so many lines: sizes are scaled, hit rates are not.
MAX_LINES = 4096
ACCESSES = 1500
#: Neighboring buffers differ by at least this factor, and neighboring plateaus by a ratio of ...
MIN_GAP = 8.0
MIN_RATIO, MAX_RATIO = 1.3, 6.0
#: Loads over a region that fits the first buffer, in a unit that does not matter.
FIRST_NS = (1.0, 200.0)


@dataclass(frozen=True)
class BufferedMemory:
    """Buffers in bytes, ascending, and the latency of each and of the medium behind them."""

    buffers: list[int]
    latencies_ns: list[float]


@dataclass(frozen=True)
class Curve:
    """The report of a probe of a memory."""

    memory: BufferedMemory
    regions: list[int]
    latencies_ns: list[float]


class _Buffer:
    """Full of distinct random lines from the start; a miss replaces a random one."""

    def __init__(self, capacity: int, lines: int, rng: random.Random) -> None:
        self._rng = rng
        self._slots = rng.sample(range(lines), min(capacity, lines))
        self._held = set(self._slots)

    def hits(self, line: int) -> bool:
        if line in self._held:
            return True
        if self._slots:
            slot = self._rng.randrange(len(self._slots))
            self._held.discard(self._slots[slot])
            self._held.add(line)
            self._slots[slot] = line
        return False


def play(memory: BufferedMemory, region: int, rng: random.Random) -> float:
    """Mean latency of random accesses to a region; a miss goes on to the next buffer."""
    line_bytes = max(64, region // MAX_LINES)
    lines = region // line_bytes
    buffers = [_Buffer(round(size / line_bytes), lines, rng) for size in memory.buffers]
    total = 0.0
    for _ in range(ACCESSES):
        line = rng.randrange(lines)
        level = next((i for i, b in enumerate(buffers) if b.hits(line)), len(buffers))
        total += memory.latencies_ns[level]
    return total / ACCESSES


def draw_memory(rng: random.Random) -> BufferedMemory:
    """One to three buffers of 16 KiB to 32 MiB, of any size in between."""
    count = rng.choice([1, 2, 3])
    while True:
        sizes = sorted(16 * KIB * 2048 ** rng.random() for _ in range(count))
        if all(b >= MIN_GAP * a for a, b in pairwise(sizes)):
            break
    latencies = [FIRST_NS[0] * (FIRST_NS[1] / FIRST_NS[0]) ** rng.random()]
    for _ in range(count):
        latencies.append(latencies[-1] * MIN_RATIO * (MAX_RATIO / MIN_RATIO) ** rng.random())
    return BufferedMemory([round(size) for size in sizes], latencies)


def draw_curve(seed: int) -> Curve:
    """A memory under a probe of two to four regions an octave, each figure 2 to 5 % off."""
    rng = random.Random(seed)
    memory = draw_memory(rng)
    steps = rng.choice([2, 3, 4])
    noise = rng.uniform(0.02, 0.05)
    largest = 8 * memory.buffers[-1]
    regions = [4 * KIB]
    while regions[-1] < largest:
        regions.append(int(4 * KIB * 2 ** (len(regions) / steps)) // 64 * 64)
    latencies = [play(memory, r, rng) * rng.lognormvariate(0.0, noise) for r in regions]
    return Curve(memory, regions, latencies)
