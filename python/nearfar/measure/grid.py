"""Base class of probe plans: grid points sampled on fresh memory, in a random order."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Self

from nearfar.measure.session import Key, Samples

if TYPE_CHECKING:
    from nearfar._native import Usage

#: A grid of at most this many points is not reduced further.
MIN_POINTS = 4


@dataclass(frozen=True)
class GridPlan(ABC, Generic[Key]):
    """A plan whose epoch opens one probe and samples each point once (see ``session.Plan``)."""

    grid: Sequence[Key]

    @abstractmethod
    def open(self, seed: int) -> Any:
        """Map fresh memory, and return the probe that is passed to ``sample``."""

    def sample(self, probe: Any, key: Key, seed: int) -> tuple[float, Sequence[Usage]]:
        """Measure one point: its value, and the accounts of the timed threads."""
        raise NotImplementedError

    def shuffled(self, seed: int) -> list[Key]:
        """The grid in a random order."""
        order = list(self.grid)
        random.Random(seed).shuffle(order)
        return order

    def epoch(self, seed: int) -> Samples[Key]:
        """Each point once, in a random order."""
        probe = self.open(seed)
        samples: Samples[Key] = Samples()
        for key in self.shuffled(seed):
            value, usages = self.sample(probe, key, seed)
            samples.add(key, value, usages)
        return samples

    def smaller(self) -> Self | None:
        """Keep every other point, and the last one."""
        if len(self.grid) <= MIN_POINTS:
            return None
        kept = list(self.grid[:-1:2])
        return replace(self, grid=(*kept, self.grid[-1]))
