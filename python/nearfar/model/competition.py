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


def speeds(known: Competition, near_threads: int, far_threads: int) -> tuple[SideSpeed, SideSpeed]:
    """Speed of a near and of a far thread. Raises BadInputError for unmeasured thread counts."""
    if isinstance(known, ContentionModel):
        return contention.speeds(known, near_threads, far_threads)
    if (near_threads, far_threads) != (known.near_threads, known.far_threads):
        raise BadInputError(
            f"the measured row has {known.near_threads} + {known.far_threads} threads, and "
            f"{near_threads} + {far_threads} are asked for",
            "measure that row too, or fit a model to several with `nearfar fit contention`",
        )
    return _of_thread(known.near, near_threads), _of_thread(known.far, far_threads)


def _of_thread(side: Bandwidth, threads: int) -> SideSpeed:
    value, low, high = (bandwidth / threads for bandwidth in side)
    return SideSpeed(value, low, high, value, 1.0)


def half_widths(known: Competition) -> tuple[float, float]:
    """Half-widths of the 95 % intervals of near and far speeds, relative."""
    if isinstance(known, ContentionModel):
        return known.near.half_width, known.far.half_width
    near, far = (math.log(high / low) / 2 for _, low, high in (known.near, known.far))
    return near, far


def rows(known: Competition) -> int:
    """Number of measured rows behind it."""
    return len(known.rows) if isinstance(known, ContentionModel) else 1


def level(known: Competition) -> int:
    """Calibration level of predictions for work with a measured row."""
    return contention.level(known)[0] if isinstance(known, ContentionModel) else 2
