"""Regions of the chases that measure a host."""

from __future__ import annotations

from dataclasses import dataclass

from nearfar.measure.chases import AT_ONCE, IN_TURN, ONCE, REVISITED, SPACED, Chase, Spacing
from nearfar.measure.latency import octaves
from nearfar.records.profile import Host
from nearfar.units import MIB, PAGE_BYTES

LARGEST = 128 * MIB
#: The largest region of chases that visit each line twice. Linking a larger one takes too long.
MAX_REVISITED = 64 * MIB

#: Spacings of the chases that measure the reorder window. Integer code: five of eight instructions
#: write an integer register.
SPACINGS = {
    kind: tuple(Spacing(kind, instructions) for instructions in (32, 64, 96, 128))
    for kind in ("integers", "registers", "empty")
}


@dataclass(frozen=True)
class Regions:
    """Regions of the chases, in bytes."""

    #: One region for each level, by the key of its latency.
    levels: dict[str, int]
    #: Regions whose lines are visited twice a round.
    revisited: tuple[int, ...]
    #: Regions larger than the reach of the first TLB level and smaller than that of the second.
    within: tuple[int, ...]
    #: Regions larger than the reach of the second TLB level.
    walked: tuple[int, ...]

    @staticmethod
    def of(host: Host, largest: int, steps_per_octave: int) -> Regions:
        """The regions for the cache sizes of a host.

        Regions of cache levels are well below the size of their cache. That of the last cache is
        only twice the second cache, because other programs may use most of the last cache.
        """
        l1, l2 = (int(host.scalar(key)) for key in ("l1d_bytes", "l2_bytes"))
        most = min(largest, MAX_REVISITED)
        first, reach = (
            int(host.scalar(f"{level}_entries")) * PAGE_BYTES for level in ("dtlb", "stlb")
        )
        walked = octaves(2 * reach, max(4 * reach, most), steps_per_octave, ONCE)
        revisited = sorted({*octaves(2 * l2, most, steps_per_octave, ONCE), *walked})
        return Regions(
            {
                "l1_load_ns": l1 // 2,
                "l2_load_ns": l2 // 4,
                "l3_load_ns": 2 * l2,
                "near_read_latency_ns": largest,
            },
            tuple(revisited),
            tuple(region for region in revisited if 2 * first <= region <= reach // 2),
            tuple(walked),
        )

    def once(self, level: str, chains: int = 1, spacing: Spacing | None = None) -> Chase:
        """Chases over the region of a level that visit each line once a round."""
        return Chase("thp", self.levels[level], ONCE, chains, spacing)

    def chases(self) -> tuple[Chase, ...]:
        """All chases. The chase over memory runs alone, and as several concurrent ones."""
        largest = self.levels["near_read_latency_ns"]
        spacings = [spacing for of_kind in SPACINGS.values() for spacing in of_kind]
        return (
            *map(self.once, self.levels),
            self.once("near_read_latency_ns", AT_ONCE),
            *(
                self.once(level, SPACED, spacing)
                for level in ("l1_load_ns", "near_read_latency_ns")
                for spacing in spacings
            ),
            *(Chase("thp", r, REVISITED, n) for r in self.revisited for n in (1, AT_ONCE)),
            *(Chase("4k", r, REVISITED, 1) for r in (*self.within, *self.walked)),
            Chase("4k", largest, IN_TURN, 1),
        )
