"""The speed of competing threads for predictions of splits: a fitted model, or one measured row.

Equation: from a measured row, a thread's speed is the side's bandwidth over its threads.
Source: none needed. Limits: a row is valid for its own threads only, and for copies only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nearfar.errors import BadInputError
from nearfar.model import contention
from nearfar.model.contention import ContentionModel, SideSpeed

Bandwidth = tuple[float, float, float]


@dataclass(frozen=True)
class MeasuredPair:
    """One row of the competition benchmark: value, low and high of each side in bytes/s."""

    near_threads: int
    far_threads: int
    near: Bandwidth
    far: Bandwidth


Competition = ContentionModel | MeasuredPair


def speeds(
    competition: Competition, near_threads: int, far_threads: int
) -> tuple[SideSpeed, SideSpeed]:
    """Speed of a near and of a far thread. Raises BadInputError for unmeasured thread counts."""
    if isinstance(competition, ContentionModel):
        return contention.speeds(competition, near_threads, far_threads)
    if (near_threads, far_threads) != (competition.near_threads, competition.far_threads):
        raise BadInputError(
            f"the measured row has {competition.near_threads} + {competition.far_threads} threads, "
            f"and {near_threads} + {far_threads} are asked for",
            "measure that row too, or fit a model to several with `nearfar fit contention`",
        )
    return _of_thread(competition.near, near_threads), _of_thread(competition.far, far_threads)


def _of_thread(side: Bandwidth, threads: int) -> SideSpeed:
    value, low, high = (bandwidth / threads for bandwidth in side)
    return SideSpeed(value, low, high, value, 1.0)


def half_widths(competition: Competition) -> tuple[float, float]:
    """Half-widths of the 95 % intervals of near and far speeds, relative."""
    if isinstance(competition, ContentionModel):
        return competition.near.half_width, competition.far.half_width
    near, far = (math.log(high / low) / 2 for _, low, high in (competition.near, competition.far))
    return near, far


def rows(competition: Competition) -> int:
    """Number of measured rows behind it."""
    return len(competition.rows) if isinstance(competition, ContentionModel) else 1


def level(competition: Competition) -> int:
    """Calibration level of predictions for work with a measured row."""
    return contention.level(competition)[0] if isinstance(competition, ContentionModel) else 2
