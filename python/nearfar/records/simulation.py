"""Results of simulations, with the origin of each number."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from nearfar.records.choices import CoreModel, EngineName, PagePolicy, Scheduler, WritePolicy
from nearfar.records.figures import Amount, Answer, Count, FigureModel, Finite


class CountsModeTier(FigureModel):
    """One tier in counts mode: its accesses of 64 B, their stall time, and their energy."""

    device: str
    reads: Count
    writes: Count
    read_time_s: Amount
    write_time_s: Amount
    read_energy_J: Amount  # noqa: N815 - the joule is a capital
    write_energy_J: Amount  # noqa: N815
    standby_energy_J: Amount  # noqa: N815
    refresh_energy_J: Amount  # noqa: N815


class CountsModeTiers(FigureModel):
    """Both tiers in counts mode."""

    near: CountsModeTier
    far: CountsModeTier


class CountsSimulation(Answer):
    """Result of counts mode: time and energy of a program from its numbers of accesses."""

    page_policy: Literal["closed"]
    write_policy: WritePolicy
    time_s: Amount = Field(description="sum of CPU time and memory time")
    energy_J: Amount = Field(description="of both memories over time_s")  # noqa: N815
    cpu_time_s: Amount
    memory_time_s: Amount
    tiers: CountsModeTiers


class EnergyParts(FigureModel):
    """Parts of one memory's energy."""

    activate_J: Amount  # noqa: N815
    array_write_J: Amount  # noqa: N815
    read_J: Amount  # noqa: N815
    write_J: Amount  # noqa: N815
    refresh_J: Amount  # noqa: N815
    background_J: Amount  # noqa: N815


class BankActivity(FigureModel):
    """Events of one bank, including those of page migrations."""

    channel: Count
    rank: Count = Field(description="number in the channel")
    bank_group: Count = Field(description="number in the rank")
    bank: Count = Field(description="number in the bank group")
    reads: Count
    writes: Count
    row_hits: Count
    activates: Count


class SimulatedTier(FigureModel):
    """One memory under a stream of requests."""

    device: str
    reads: Count = Field(description="requests of the program")
    writes: Count = Field(description="requests of the program")
    device_reads: Count = Field(description="lines read, including those of page migrations")
    device_writes: Count = Field(description="lines written, including those of page migrations")
    row_hit_share: Amount | None = Field(
        None,
        description="row hits over device_reads + device_writes; for a memory without command "
        "timings, reads that hit a buffer over the same sum",
    )
    refreshes: Count = Field(description="refresh commands")
    active_power_down_s: Amount | None = Field(
        None, description="time in power-down with an open row, summed over ranks; absent if 0"
    )
    power_down_s: Amount | None = Field(
        None, description="time in power-down without an open row, summed over ranks; absent if 0"
    )
    self_refresh_s: Amount | None = Field(
        None, description="time in self-refresh, summed over ranks; absent if 0"
    )
    read_latency_ns: Amount | None = Field(None, description="mean, including queueing")
    p50_latency_ns: Amount | None = None
    p90_latency_ns: Amount | None = None
    p99_latency_ns: Amount | None = None
    p999_latency_ns: Amount | None = None
    largest_latency_ns: Amount | None = None
    read_latency_histogram: list[tuple[Count, Count]] = Field(
        default_factory=list,
        description="(upper bound in ns, reads above the previous bound and up to this one)",
    )
    traffic_interval_s: Amount | None = Field(
        None, description="length of an interval of traffic_bytes_per_s, of simulated time"
    )
    traffic_bytes_per_s: list[Amount] = Field(
        default_factory=list,
        description="bandwidth of the program, by interval in which its accesses ended",
    )
    banks: list[BankActivity] = Field(
        default_factory=list,
        description="events by bank; empty for the fast engine and without command timings",
    )
    energy_J: Amount | None = Field(  # noqa: N815
        None, description="absent for a device without energy figures"
    )
    energy_parts: EnergyParts | None = None
    lines_written: Count = Field(description="number of lines with at least one write")
    pages_written: Count = Field(description="number of pages with at least one write")
    most_line_writes: Count = Field(description="writes of the most written line")
    most_page_writes: Count = Field(description="writes to all lines of the most written page")
    lifetime_s: Amount | None = Field(
        None, description="time until the most written line wears out, without wear leveling"
    )
    levelled_lifetime_s: Amount | None = Field(
        None, description="lifetime with perfect wear leveling over the written pages"
    )


class SimulatedTiers(FigureModel):
    """Both memories."""

    near: SimulatedTier
    far: SimulatedTier


class Difference(FigureModel):
    """Fast engine relative to the exact one: internal consistency, not validation."""

    requests: Count = Field(description="number that both engines simulated")
    time_difference: Finite = Field(
        description="time of the fast engine over exact_time_s, minus 1"
    )
    energy_difference: Finite | None = Field(
        None, description="energy of the fast engine / exact_energy_J - 1"
    )
    exact_time_s: Amount
    exact_energy_J: Amount | None = None  # noqa: N815
    exact_requests_per_s: Amount


class ControllerSettings(FigureModel):
    """Settings of the memory controllers, except the row policy."""

    timeout_ns: Amount | None = Field(
        default=None,
        description="idle time of a row until the policy timeout closes it; absent: other policies",
    )
    scheduler: Scheduler
    row_hit_cap: Count | None = Field(
        None,
        description="accesses to an open row after which an older request for another row goes "
        "first; absent: no limit",
    )
    write_drain: tuple[Count, Count, Count] = Field(
        description="queued writes that start a drain, end it, and start it while no read waits"
    )
    address_mapping: str = Field(description="address fields from the highest bits to the lowest")
    power_down_after_ns: Amount | None = Field(
        default=None, description="idle time of a rank until power-down; absent: never"
    )
    self_refresh_after_ns: Amount | None = Field(
        default=None, description="idle time of a rank until self-refresh; absent: never"
    )


class Simulation(Answer):
    """Result of a trace or a synthetic stream on two memories."""

    source: str
    engine: EngineName
    placement: str
    page_policy: PagePolicy
    controller: ControllerSettings | None = Field(None, description="absent before version 0.2")
    write_policy: WritePolicy
    core: CoreModel
    window: Count
    requests: Count
    time_s: Amount = Field(description="simulated run time of the program")
    cpu_time_s: Amount = Field(description="part of time_s between requests")
    stall_s: Amount = Field(description="part of time_s in which the kernel migrates pages")
    moved_pages: Count
    energy_J: Amount | None = Field(None, description="of the memories that energy_of names")  # noqa: N815
    energy_of: Literal["both", "near", "far"] = Field(
        "both",
        description="memories in energy_J; one that was neither chosen nor accessed is left out",
    )
    bandwidth_bytes_per_s: Amount = Field(description="64 B per request over time_s")
    requests_per_s: Amount = Field(description="speed of the simulator on this machine")
    tiers: SimulatedTiers
    difference: Difference | None = None


class CurvePoint(FigureModel):
    """Bandwidth and latencies at one request rate."""

    bandwidth_bytes_per_s: Amount
    latency_ns: Amount
    p99_latency_ns: Amount


class LoadCurve(Answer):
    """Latency of a device by bandwidth."""

    requested: ClassVar[frozenset[str]] = frozenset({"read_share"})

    device: str
    engine: EngineName
    pattern: str
    read_share: Amount
    page_policy: PagePolicy
    controller: ControllerSettings | None = Field(None, description="absent before version 0.2")
    requests: Count = Field(description="number per point")
    latency_ns: Amount = Field(description="mean, at the lowest load")
    bandwidth_bytes_per_s: Amount = Field(description="maximum that was reached")
    points: list[CurvePoint] = Field(description="by ascending bandwidth")
