"""A program run with its heap in several places, in turns."""

from __future__ import annotations

from pydantic import Field

from nearfar.records.figures import Amount, Count, FigureModel, ObservationModel, Positive


class RunTimes(ObservationModel):
    """Times of the runs of one variant, as hyperfine summarizes them."""

    mean_s: Positive = Field(description="wall time, as ``time_s``")
    stddev_s: Amount | None = Field(description="of a sample; absent for a single run")
    min_s: Positive
    max_s: Positive
    user_s: Amount = Field(description="mean CPU time in the program")
    system_s: Amount = Field(description="mean CPU time in the kernel")


class VariantRow(FigureModel):
    """One place of the heap. Ratios are to the first variant, run by run."""

    variant: str
    cpu_time_s: Positive = Field(description="of all threads and children, user and system")
    time_s: Positive = Field(description="wall time, less the time waited for a CPU")
    run_times: RunTimes
    slowdown: Positive | None = Field(None, description="of CPU time; absent for the first")
    wall_slowdown: Positive | None = Field(None, description="of wall time; absent for the first")
    predicted_slowdown: Positive | None = Field(
        None, description="of CPU time, as the plan's promise has it"
    )


class VariantsResult(FigureModel):
    """The answer of ``nearfar run --compare``."""

    program: list[str]
    tiers: dict[str, str] = Field(description="as --tier gave them")
    runs: Count = Field(description="of each variant")
    variants: list[VariantRow] = Field(min_length=1)
    disturbed: list[str] = Field(
        default_factory=list, description="what else used the machine during the runs"
    )
