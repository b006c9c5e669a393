"""CPUs of near and far threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearfar.errors import BadInputError

#: More threads than this on a CPU measure the scheduler, not memory.
MAX_PER_PROCESSOR = 16


@dataclass(frozen=True)
class Teams:
    """Threads on each side. Near threads get the first CPUs, far threads the next ones."""

    near_threads: int
    far_threads: int
    cpus: tuple[int, ...]

    @property
    def oversubscribed(self) -> bool:
        """Whether threads share CPUs; such figures are not used in fits."""
        return self.near_threads + self.far_threads > len(self.cpus)

    @property
    def near_cpus(self) -> list[int]:
        """A CPU for each near thread."""
        return [self.cpus[i % len(self.cpus)] for i in range(self.near_threads)]

    @property
    def far_cpus(self) -> list[int]:
        """A CPU for each far thread. If there are too few CPUs, threads share them."""
        first = self.near_threads
        return [self.cpus[(first + i) % len(self.cpus)] for i in range(self.far_threads)]


def check_threads(threads: int, cpus: Sequence[int], *, asked: bool) -> None:
    """Raise an error for more threads than requested CPUs, or for unreasonably many.

    Without ``--cpus`` (``asked`` is false), threads may share CPUs; the record marks such figures.
    """
    most = len(cpus) if asked else MAX_PER_PROCESSOR * len(cpus)
    if threads > most:
        raise BadInputError(
            f"{threads} threads on {len(cpus)} processors measure the scheduler, not memory",
            f"use at most {most}" + (", or ask for more --cpus" if asked else ""),
        )
