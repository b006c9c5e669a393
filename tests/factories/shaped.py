"""Common parts of synthetic figures: their estimates, their origin, their machine."""

from __future__ import annotations

from typing import Any

from nearfar.records.figures import Origin, figure_fields
from nearfar.stats import Estimate

MACHINE_ID = "made-up-0001"


def around(value: float, width: float = 0.015, statistic: str = "median") -> Estimate:
    low, high = value * (1 - width), value * (1 + width)
    interval = None if statistic == "best" else (low, high)
    return Estimate(value, low, high, 7, width, statistic, 0, interval)


def shaped(
    estimates: dict[str, Estimate], origin: Origin = Origin.MEASURED, seed: int | None = 1
) -> dict[str, Any]:
    return figure_fields(origin, estimates, seed=seed, machine=MACHINE_ID)


def origin(tier: str) -> Origin:
    return Origin.EMULATED if tier.startswith("shm") else Origin.MEASURED
