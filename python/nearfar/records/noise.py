"""The verdict on a run's noise, as records keep it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class NoiseRecord(BaseModel):
    """The verdict on the whole run, with its evidence."""

    model_config = ConfigDict(extra="forbid")

    noisy: bool
    reasons: list[str]
    foreign_cpus: float
    steal: float
    least_cpu_share: float
    worst_spread: float
    #: that were timed; absent in older records
    series: int | None = None
