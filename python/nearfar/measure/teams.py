"""Near and far threads, each with processors of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearfar.errors import BadInputError

#: More threads than this on a processor measure the scheduler, not memory.
MOST_PER_PROCESSOR = 16


@dataclass(frozen=True)
class Teams:
    """So many threads on each side; near ones get the first processors, far ones the next."""

    near_threads: int
    far_threads: int
    cpus: tuple[int, ...]

    @property
    def oversubscribed(self) -> bool:
        """Whether threads share processors: such figures feed no fit."""
        return self.near_threads + self.far_threads > len(self.cpus)

    @property
    def near_cpus(self) -> list[int]:
        """A processor for each near thread."""
        return [self.cpus[i % len(self.cpus)] for i in range(self.near_threads)]

    @property
    def far_cpus(self) -> list[int]:
        """A processor for each far thread; round again where there are too few."""
        first = self.near_threads
        return [self.cpus[(first + i) % len(self.cpus)] for i in range(self.far_threads)]


def check_threads(threads: int, cpus: Sequence[int], *, asked: bool) -> None:
    """Refuse more threads than the processors that were asked for, or absurdly many.

    Without ``--cpus`` (``asked`` is false) threads may share processors: the figures say so.
    """
    most = len(cpus) if asked else MOST_PER_PROCESSOR * len(cpus)
    if threads > most:
        raise BadInputError(
            f"{threads} threads on {len(cpus)} processors measure the scheduler, not memory",
            f"use at most {most}" + (", or ask for more --cpus" if asked else ""),
        )
