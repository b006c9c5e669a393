"""Times of placements under the load that the program itself puts on both memories.

The core model gives the stalls of each site on near memory and on idle far memory, as CPU time; its
traffic is counted or estimated. The core model divides stall times by the idle latency of near
memory, although the run was observed under load, its own and the background's. The stalls on either
memory are therefore too large by the factor L(loaded) / L(idle) of near memory:

    near_idle = near · L_near(0) / L_near(run + background)
    far_idle = far · L_near(background) / L_near(run + background) · L_far(0) / L_far(background)

``PlacementTime`` (``model.interleave``) then finds the time at which latencies, bandwidths and time
agree. With all data near it is the observed one. CPU times are converted to wall times by the ratio
of both in the observed run (at most 1). Limits: those of ``model.interleave``; first touches in far
memory count as stalls.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nearfar._native import NativeError, PlacementTime
from nearfar.errors import BadInputError
from nearfar.model.interleave import STEPS, Load, LoadedMemory, SiteTuple, state_of
from nearfar.place.costing import Cost, CostModel
from nearfar.units import LINE_BYTES

if TYPE_CHECKING:
    from nearfar._native import TierLoad
    from nearfar.place.memory_costs import Memory
    from nearfar.place.program_data import ProgramData

#: near_stall_ns, far_stall_ns, near_reads, near_writes, far_reads, far_writes
DemandTuple = tuple[float, float, float, float, float, float]
#: Slowdowns of placements, each given by its far sites, under each variant of a model's inputs.
Variants = Callable[["Memory", Sequence[list[int]]], list[list[float]]]
#: Fraction of a bandwidth above which traffic adds to latency.
MUCH_TRAFFIC = 0.25
#: An estimate of traffic is wrong if near memory can carry less than this part of it.
CREDIBLE = 0.8
#: Bisections of the traffic that near memory can have carried.
_HALVINGS = 40
_NS = 1e9


@dataclass(frozen=True)
class RunTimes:
    """Wall and CPU time of the observed run, in s. CPU times of concurrent threads grow at the same
    time, and idle time of the program does not depend on far memory."""

    wall_s: float
    cpu_s: float

    @property
    def busy_s(self) -> float:
        """Wall time in which the program computes."""
        return min(self.cpu_s, self.wall_s)

    def wall_at(self, slowdown: float) -> float:
        """Wall time at a slowdown of CPU time."""
        return self.wall_s + (slowdown - 1) * self.busy_s

    def slowdown_at(self, wall_s: float) -> float:
        """The slowdown of CPU time at a wall time."""
        return 1 + (wall_s - self.wall_s) / self.busy_s


@dataclass(frozen=True)
class SiteDemand:
    """Wall time of a site's stalls on near and on far memory, its traffic, and its size."""

    number: int
    near_ns: float
    far_ns: float
    reads: float
    writes: float
    size: float

    def native(self) -> SiteTuple:
        """The tuple of the native core."""
        return self.near_ns, self.far_ns, self.reads, self.writes, self.size


class OwnLoad:
    """A run and both memories under load. ``sites``: their demands, on idle memories.

    Raises BadInputError if the traffic is not known well enough, NativeError for a background that
    leaves no bandwidth.
    """

    def __init__(
        self,
        times: RunTimes,
        data: ProgramData,
        ends: tuple[Cost, Cost],
        near: LoadedMemory,
        far: LoadedMemory,
    ) -> None:
        self.times, self.near, self.far = times, near, far
        self.near_ns = ends[0].time_ns
        self._observed = _observed(times, data, *ends)
        part = _carried(times.wall_s, self._observed, near)
        if part < CREDIBLE:
            raise BadInputError(
                f"the estimated traffic of the run is {1 / max(part, 1e-9):.3g} times the "
                f"bandwidth of {near.name}",
                "name the near memory that the program runs on, with its bandwidth under load",
            )
        self._running = replace(
            near, background=_with_traffic(times.wall_s, self._observed, part, near)
        )
        near_part, self._far_part = _idle_parts(self._running, near, far)
        self.sites = [
            replace(
                each,
                near_ns=each.near_ns * near_part,
                far_ns=each.far_ns * self._far_part,
                reads=each.reads * part,
                writes=each.writes * part,
            )
            for each in self._observed
        ]
        base_ns = times.wall_s * _NS - sum(each.near_ns for each in self._observed)
        self._base_ns = max(base_ns, 1e-6 * times.wall_s * _NS)
        self._model = self.model(far.capacity_bytes)

    def model(self, near_bytes: float) -> PlacementTime:
        """The native model, with this much near memory."""
        return PlacementTime(
            self._base_ns,
            replace(self.near, capacity_bytes=near_bytes).native(),
            self.far.native(),
        )

    def demand(self, sites: Iterable[SiteDemand], far: Collection[int]) -> DemandTuple:
        """The demand of whole sites, of which those in ``far`` are far."""
        sums = [0.0] * 6
        for each in sites:
            is_far = each.number in far
            sums[is_far] += each.far_ns if is_far else each.near_ns
            sums[2 + 2 * is_far] += each.reads
            sums[3 + 2 * is_far] += each.writes
        return sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]

    def slowdown(self, idle: float, far: Collection[int]) -> float:
        """The slowdown with these sites far, which is ``idle`` at the latency of idle memory."""
        near_ns, _, *traffic = self.demand(self.sites, far)
        moved_ns = sum(each.near_ns for each in self._observed if each.number in far)
        return self._slowdown(idle, near_ns, moved_ns, tuple(traffic))

    def slowdown_of_share(self, idle: float, near_share: float) -> float:
        """The same with this fraction of each site's stalls and traffic near."""
        near_ns, _, reads, writes, *_ = self.demand(self.sites, ())
        far = 1 - near_share
        moved_ns = far * sum(each.near_ns for each in self._observed)
        traffic = reads * near_share, writes * near_share, reads * far, writes * far
        return self._slowdown(idle, near_ns * near_share, moved_ns, traffic)

    def _slowdown(
        self, idle: float, near_ns: float, moved_ns: float, traffic: tuple[float, ...]
    ) -> float:
        """``moved_ns``: observed near stalls of what is far."""
        added_ns = (self.times.wall_at(idle) - self.times.wall_s) * _NS
        far_ns = max(moved_ns + added_ns, 0.0) * self._far_part
        reads, writes, far_reads, far_writes = traffic
        found = self._model.time(
            [], [], STEPS, (near_ns, far_ns, reads, writes, far_reads, far_writes)
        )
        assert found is not None  # nothing has a size
        return self.times.slowdown_at(found["time_ns"] / _NS)

    def all_far(self) -> TierLoad:
        """Far memory with all data far."""
        everything = {each.number for each in self.sites}
        found = self._model.time([], [], STEPS, self.demand(self.sites, everything))
        assert found is not None  # nothing has a size
        return found["far"]

    def matters(self) -> bool:
        """Whether near memory in the run, or far memory with all data far, has much traffic."""
        busiest = max(state_of(self._running)["utilization"], self.all_far()["utilization"])
        return busiest >= MUCH_TRAFFIC

    def variants(self, idle: Variants) -> Variants:
        """The slowdowns of a model's variants, under load."""

        def loaded(far: Memory, placements: Sequence[list[int]]) -> list[list[float]]:
            return [
                [self.slowdown(s, set(p)) for s, p in zip(found, placements, strict=True)]
                for found in idle(far, placements)
            ]

        return loaded


class LoadedCoster:
    """A cost model whose times are those under load; costs of sites are those on idle memory."""

    def __init__(self, idle: CostModel, load: OwnLoad) -> None:
        self.near, self._idle, self._load = idle.near, idle, load

    def costs(self, far: Memory, placements: Sequence[Iterable[int]]) -> list[Cost]:
        """The cost of each placement."""
        near_ns = self._load.near_ns
        sets = [frozenset(each) for each in placements]
        return [
            replace(cost, time_ns=self._load.slowdown(cost.time_ns / near_ns, each) * near_ns)
            for cost, each in zip(self._idle.costs(far, sets), sets, strict=True)
        ]


def _observed(times: RunTimes, data: ProgramData, near: Cost, far: Cost) -> list[SiteDemand]:
    """All sites with their stalls under the load of the run."""
    scale = times.busy_s * _NS / near.time_ns if near.time_ns else 0.0
    return [
        SiteDemand(
            number=site.number,
            near_ns=near.sites[site.number].stall_ns * scale,
            far_ns=max(far.sites[site.number].stall_ns + far.sites[site.number].added_touch_ns, 0.0)
            * scale,
            reads=float(site.reads * LINE_BYTES),
            writes=float(site.writes * LINE_BYTES),
            size=float(data.held_bytes(site.number)),
        )
        for site in data.sites
    ]


def _with_traffic(
    wall_s: float, sites: Sequence[SiteDemand], part: float, near: LoadedMemory
) -> Load:
    """The background of near memory and this part of the run's traffic."""
    return Load(
        near.background.reads + part * sum(each.reads for each in sites) / wall_s,
        near.background.writes + part * sum(each.writes for each in sites) / wall_s,
    )


def _carried(wall_s: float, sites: Sequence[SiteDemand], near: LoadedMemory) -> float:
    """The largest part of the run's traffic that is below the peak of near memory."""

    def is_possible(part: float) -> bool:
        try:
            state_of(replace(near, background=_with_traffic(wall_s, sites, part, near)))
        except NativeError:
            return False
        return True

    if is_possible(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_possible(middle) else (low, middle)
    return low


def _idle_parts(
    running: LoadedMemory, near: LoadedMemory, far: LoadedMemory
) -> tuple[float, float]:
    """Stalls on idle near and far memory, over those that were observed and modelled."""
    running_ns = state_of(running)["latency_ns"]
    far_factor = (
        state_of(far)["latency_ns"] / state_of(replace(far, background=Load()))["latency_ns"]
    )
    near_part = state_of(replace(near, background=Load()))["latency_ns"] / running_ns
    return near_part, state_of(near)["latency_ns"] / running_ns / far_factor
