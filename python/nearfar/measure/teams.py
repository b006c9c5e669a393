"""CPUs of near and far threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearfar.errors import BadInputError

#: More threads than this on a CPU measure the scheduler, not memory.
MAX_PER_PROCESSOR = 16


@dataclass(frozen=True)
class Teams:
    """A number of threads on each side; near ones get the first CPUs, far ones the next."""

    near_threads: int
    far_threads: int
    cpus: tuple[int, ...]

    @property
    def oversubscribed(self) -> bool:
        """Whether threads share CPUs: such figures are excluded from fits."""
        return self.near_threads + self.far_threads > len(self.cpus)

    @property
    def near_cpus(self) -> list[int]:
        """A CPU for each near thread."""
        return [self.cpus[i % len(self.cpus)] for i in range(self.near_threads)]

    @property
    def far_cpus(self) -> list[int]:
        """A CPU for each far thread; reused in turn if there are too few."""
        first = self.near_threads
        return [self.cpus[(first + i) % len(self.cpus)] for i in range(self.far_threads)]


def check_threads(threads: int, cpus: Sequence[int], *, asked: bool) -> None:
    """Reject more threads than the CPUs that were requested, or unreasonably many.

    Without ``--cpus`` (``asked`` is false) threads may share CPUs: the figures say so.
    """
    most = len(cpus) if asked else MAX_PER_PROCESSOR * len(cpus)
    if threads > most:
        raise BadInputError(
            f"{threads} threads on {len(cpus)} processors measure the scheduler, not memory",
            f"use at most {most}" + (", or ask for more --cpus" if asked else ""),
        )
