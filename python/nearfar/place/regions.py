"""Data of processes, seen from outside, and how a plan names it: anonymous memory, mapped files.

The kernel joins and splits mappings; a region is what lies together. A plan names a region that
the kernel has no name for by its size, in classes that are a factor of 4 wide: the sizes of a
program's regions change less from run to run than their addresses, which are random. ``rules``
leaves no gaps between the classes of a plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

_NAMED, _DELETED = "[anon:", " (deleted)"


@dataclass(frozen=True)
class SampledRegion:
    """A region of a process, from ``begin`` to before ``end``; ``name``: as in /proc/PID/maps.
    ``is_statics``: data of the program or library of this name."""

    process: int
    begin: int
    end: int
    name: str
    is_statics: bool = False

    def selector(self) -> str:
        """Its name in a plan; empty if it has none: stacks and pages of the kernel."""
        if self.name == "[heap]":
            return "map=heap"
        if self.name.startswith(_NAMED):
            return _selector("name", self.name.removeprefix(_NAMED).removesuffix("]"))
        if self.name.startswith("/"):
            return _selector("file", mapped_file(self.name))
        if self.name:
            return ""
        least = 1 << ((self.end - self.begin).bit_length() - 1) // 2 * 2
        return f"map=anonymous size={least}..{4 * least - 1}"


def mapped_file(path: str) -> str:
    """The name by which plans have a file, from its path in /proc/PID/maps."""
    return path.removesuffix(_DELETED).rpartition("/")[2]


def _selector(kind: str, name: str) -> str:
    return "" if set(name) & set(" \t#") else f"map={kind}:{name}"


class Regions:
    """Regions by address."""

    def __init__(self, regions: Iterable[SampledRegion]) -> None:
        import numpy as np

        self.all = sorted(regions, key=lambda region: (region.process, region.begin))
        self._begins: dict[int, NDArray[np.uint64]] = {}
        self._first: dict[int, int] = {}
        for process in {region.process for region in self.all}:
            its = [i for i, region in enumerate(self.all) if region.process == process]
            self._first[process] = its[0]
            self._begins[process] = np.array([self.all[i].begin for i in its], np.uint64)

    def find(
        self, processes: NDArray[np.int32], addresses: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """The index of the region of each address, or -1."""
        import numpy as np

        found = np.full(len(addresses), -1, np.int64)
        ends = np.array([region.end for region in self.all], np.uint64)
        for process, begins in self._begins.items():
            mine = processes == process
            at = np.searchsorted(begins, addresses[mine], "right") - 1
            index = np.where(at >= 0, at + self._first[process], 0)
            inside = (at >= 0) & (addresses[mine] < ends[index])
            found[mine] = np.where(inside, index, -1)
        return found
