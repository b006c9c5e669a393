"""The verdict on a run's noise, as records keep it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field


class Reliability(StrEnum):
    """Whether a figure can be relied on. From the best to the worst."""

    STEADY = "steady"
    DISTURBED = "disturbed"
    UNUSABLE = "unusable"

    @property
    def rank(self) -> int:
        """Position in this order: the larger, the worse."""
        return list(Reliability).index(self)


class FigureVerdict(BaseModel):
    """The verdict on one point of a series, with its reason."""

    model_config = ConfigDict(extra="forbid")

    figure: str
    verdict: Reliability
    reason: str = Field(default="", description="why it is not steady, or why a spread is normal")
    spread: float | None = Field(default=None, description="interquartile range over median")


class SeriesVerdict(BaseModel):
    """The verdict on one series of measurements, and on each of its figures."""

    model_config = ConfigDict(extra="forbid")

    section: str = Field(description="key of the section that the series belongs to")
    series: str
    verdict: Reliability
    reasons: list[str] = Field(default_factory=list)
    set_aside: int = Field(
        default=0, description="epochs that other work disturbed, and that calm ones replaced"
    )
    figures: list[FigureVerdict] = Field(default_factory=list)


class SectionVerdict(NamedTuple):
    """The worst verdict on the series of a section; the reason that decides it is the first."""

    verdict: Reliability
    reasons: list[str]


def _together(series: Sequence[SeriesVerdict]) -> SectionVerdict:
    ordered = sorted(series, key=lambda each: each.verdict.rank, reverse=True)
    return SectionVerdict(
        ordered[0].verdict, [reason for each in ordered for reason in each.reasons]
    )


class NoiseRecord(BaseModel):
    """The verdict on the whole run, with its evidence."""

    model_config = ConfigDict(extra="forbid")

    noisy: bool
    reasons: list[str]
    foreign_cpus: float
    steal: float
    least_cpu_share: float
    worst_spread: float
    #: Number of series that were timed; absent in older records.
    series: int | None = None
    judged: list[SeriesVerdict] = Field(
        default_factory=list, description="by series; empty in older records"
    )

    def by_section(self) -> dict[str, SectionVerdict]:
        """Return the verdict on each section, in the order of the run."""
        found: dict[str, list[SeriesVerdict]] = {}
        for each in self.judged:
            found.setdefault(each.section, []).append(each)
        return {section: _together(series) for section, series in found.items()}

    def on_whole(self) -> SectionVerdict:
        """Return the verdict on all of the run."""
        if self.judged:
            return _together(self.judged)
        return SectionVerdict(
            Reliability.DISTURBED if self.noisy else Reliability.STEADY, self.reasons
        )
