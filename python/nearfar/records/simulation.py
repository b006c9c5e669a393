"""Results of simulations, with the origin of each number."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from nearfar.records.choices import CoreModel, EngineName, PagePolicy, Scheduler, WritePolicy
from nearfar.records.shape import Amount, Answer, Count, Finite, Shaped


class TierWork(Shaped):
    """The accesses of one tier (64 B each), the stall time that they caused, and their energy."""

    device: str
    reads: Count
    writes: Count
    read_time_s: Amount
    write_time_s: Amount
    read_energy_J: Amount  # noqa: N815 - the joule is a capital
    write_energy_J: Amount  # noqa: N815
    standby_energy_J: Amount  # noqa: N815
    refresh_energy_J: Amount  # noqa: N815


class Tiers(Shaped):
    """Both tiers."""

    near: TierWork
    far: TierWork


class CountsSimulation(Answer):
    """Result of counts mode: a program given by its numbers of accesses."""

    page_policy: Literal["closed"]
    write_policy: WritePolicy
    time_s: Amount = Field(description="sum of CPU time and memory time")
    energy_J: Amount = Field(description="of both memories over time_s")  # noqa: N815
    cpu_time_s: Amount
    memory_time_s: Amount
    tiers: Tiers


class EnergyParts(Shaped):
    """Parts of one memory's energy."""

    activate_J: Amount  # noqa: N815
    array_write_J: Amount  # noqa: N815
    read_J: Amount  # noqa: N815
    write_J: Amount  # noqa: N815
    refresh_J: Amount  # noqa: N815
    background_J: Amount  # noqa: N815


class BankWork(Shaped):
    """Work of one bank: accesses of the program and of page migrations."""

    channel: Count
    rank: Count = Field(description="number in the channel")
    bank_group: Count = Field(description="number in the rank")
    bank: Count = Field(description="number in the bank group")
    reads: Count
    writes: Count
    row_hits: Count
    activates: Count


class SimulatedTier(Shaped):
    """One memory under a stream of requests."""

    device: str
    reads: Count = Field(description="of the program; device_reads includes page migrations")
    writes: Count
    device_reads: Count
    device_writes: Count
    row_hit_share: Amount | None = Field(None, description="of all accesses; buffers: of reads")
    refreshes: Count
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
    banks: list[BankWork] = Field(
        default_factory=list, description="exact engine, memory with commands: work by bank"
    )
    energy_J: Amount | None = Field(None, description="absent without figures")  # noqa: N815
    energy_parts: EnergyParts | None = None
    lines_written: Count
    pages_written: Count
    most_line_writes: Count
    most_page_writes: Count
    lifetime_s: Amount | None = Field(
        None, description="time until the most written line wears out, without wear leveling"
    )
    levelled_lifetime_s: Amount | None = Field(
        None, description="lifetime with perfect wear leveling over the written pages"
    )


class SimulatedTiers(Shaped):
    """Both memories."""

    near: SimulatedTier
    far: SimulatedTier


class Difference(Shaped):
    """Relative differences of the fast engine from the exact one (consistency, not validation)."""

    requests: Count = Field(description="number that both engines simulated")
    time_difference: Finite
    energy_difference: Finite | None = None
    exact_time_s: Amount
    exact_energy_J: Amount | None = None  # noqa: N815
    exact_requests_per_s: Amount


class ControllerSettings(Shaped):
    """Settings of the memory controllers, except the row policy."""

    timeout_ns: Amount | None = Field(
        default=None,
        description="idle time of a row until the policy timeout closes it; absent: other policies",
    )
    scheduler: Scheduler
    row_hit_cap: Count | None = Field(
        None,
        description="accesses to an open row before an older request for another row goes first",
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
    stall_s: Amount = Field(description="part of time_s in the kernel, for page migrations")
    moved_pages: Count
    energy_J: Amount | None = Field(None, description="of the memories in energy_of")  # noqa: N815
    energy_of: Literal["both", "near", "far"] = Field(
        "both", description="a default memory without accesses is left out"
    )
    bandwidth_bytes_per_s: Amount
    requests_per_s: Amount = Field(description="speed of the simulator on this machine")
    tiers: SimulatedTiers
    difference: Difference | None = None


class CurvePoint(Shaped):
    """Latencies at one arrival rate."""

    bandwidth_bytes_per_s: Amount
    latency_ns: Amount
    p99_latency_ns: Amount


class LoadCurve(Answer):
    """Latency of a device by bandwidth."""

    asked: ClassVar[frozenset[str]] = frozenset({"read_share"})

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
