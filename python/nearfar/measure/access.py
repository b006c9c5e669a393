"""Bandwidth of independent accesses: mixes of reads and writes, orders, sizes, threads, strides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from nearfar._native import AccessProbe
from nearfar.measure.ceiling import check_rate
from nearfar.measure.grid import GridPlan
from nearfar.measure.session import Effort, Samples, Session
from nearfar.records.choices import AccessOrder
from nearfar.records.depth import AccessPoint, AccessResult
from nearfar.stats import Estimate, median
from nearfar.units import KIB, format_size

if TYPE_CHECKING:
    from nearfar._native import Usage

SAMPLE_NS = 5_000_000
BLOCKS = (64, 256, 4 * KIB)
#: Mixes: reads, writes, and whether writes are non-temporal.
MIXES = ((1, 0, False), (3, 1, False), (2, 1, False), (1, 1, False), (0, 1, False), (0, 1, True))
STRIDES = tuple(256 << i for i in range(11))  # to 256 KiB
#: A stride indicates interleaving if its bandwidth is below this fraction of the bandwidths of both
#: strides next to it.
DIP = 0.6


class Access(NamedTuple):
    """One point of the grid."""

    order: AccessOrder
    block_bytes: int
    stride_bytes: int
    reads: int
    writes: int
    nontemporal: bool
    threads: int

    def __str__(self) -> str:
        past = " past the caches" if self.nontemporal else ""
        return (
            f"{self.order} {self.reads}:{self.writes}{past}, {format_size(self.block_bytes)}, "
            f"{self.threads} threads"
        )


def mixes(threads: Sequence[int]) -> list[Access]:
    """All points: each mix in random and sequential order, by size and threads, and strided."""
    regular: list[Access] = [
        Access(order, block, 0, *mix, n)
        for n in threads
        for block in BLOCKS
        for order in ("sequential", "random")
        for mix in MIXES
    ]
    strided = [Access("strided", 64, 16 * 64, *mix, n) for n in threads for mix in MIXES]
    return [*regular, *strided]


def strides(threads: int) -> list[Access]:
    """Reads of lines by all threads at growing strides. Interleaving causes a dip in bandwidth."""
    return [Access("strided", 64, stride, 1, 0, False, threads) for stride in STRIDES]


@dataclass(frozen=True)
class AccessPlan(GridPlan[Access]):
    """Independent accesses to one tier. Values: bytes/s."""

    tier: str
    size_bytes: int
    cpus: tuple[int, ...]

    def open(self, seed: int) -> AccessProbe:
        """Map memory and touch it from all CPUs of the plan."""
        return AccessProbe(self.tier, self.size_bytes, list(self.cpus))

    def sample(self, probe: AccessProbe, key: Access, seed: int) -> tuple[float, Sequence[Usage]]:
        """Run the accesses of one point; each thread accesses its own slice of the memory."""
        run = probe.run(
            key.order,
            key.block_bytes,
            key.stride_bytes,
            key.reads,
            key.writes,
            key.nontemporal,
            list(self.cpus[: key.threads]),
            SAMPLE_NS,
            seed,
        )
        rate = check_rate(run["counted_bytes"] / run["seconds"], key.threads, str(key))
        return rate, run["members"]


def measure(
    session: Session, tier: str, size_bytes: int, cpus: Sequence[int], effort: Effort
) -> AccessResult:
    """Measure mixes and strides on one tier, with one thread and with all."""
    threads = sorted({1, len(cpus)})
    grid = (*mixes(threads), *strides(len(cpus)))
    plan = AccessPlan(grid, tier, size_bytes, tuple(cpus))
    samples, _ = session.repeat(f"access {tier}", "bytes_per_s", plan, effort)
    walk = [a for a in strides(len(cpus)) if a in samples.series]
    return AccessResult(
        tier=tier,
        size_bytes=size_bytes,
        points=[_point(session, tier, samples, a) for a in samples.series if a not in walk],
        strides=[_point(session, tier, samples, a) for a in walk],
        interleave_bytes=_interleave({a.stride_bytes: median(samples.of(a)) for a in walk}),
    )


def _point(session: Session, tier: str, samples: Samples[Access], access: Access) -> AccessPoint:
    return AccessPoint(
        **access._asdict(),
        **session.figures(tier, bandwidth_bytes_per_s=median(samples.of(access))),
    )


def _interleave(rates: dict[int, Estimate]) -> int | None:
    """The stride with a dip that exceeds its interval; None without a dip."""

    ordered = sorted(rates.items())
    for before, (stride, rate), after in zip(ordered, ordered[1:], ordered[2:], strict=False):
        if rate.high < DIP * min(before[1].low, after[1].low):
            return stride
    return None
