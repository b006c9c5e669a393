"""Both memories of advice under load: curves of profiles, or measured now.

A tier of this machine has the latency of its stored host and the bandwidth of one thread; if the
program uses much of that, its loaded latency is measured.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nearfar._native import NativeError, parse_tier
from nearfar.errors import BadInputError, MachineError
from nearfar.model.interleave import LoadedMemory, loaded_memory_of, parse_background
from nearfar.place.attached.node_tiers import nodes_with
from nearfar.place.fractions import Nodes
from nearfar.place.own_load import MUCH_TRAFFIC, OwnLoad
from nearfar.profiles import is_profile
from nearfar.units import LINE_BYTES
from nearfar.workflows.observation import AdviceRequest, Observation

if TYPE_CHECKING:
    from nearfar.measure.session import Session
    from nearfar.place.advising import AdviceInputs
    from nearfar.place.memory_costs import Memory
    from nearfar.records.profile import Figure, Profile

#: Time of a measurement of loaded latency, and its epochs.
_BUDGET_S, _EPOCHS = 5.0, 3


@dataclass(frozen=True)
class Side:
    """A memory: its role (``near`` or ``far``), its name in the request, and its profile without a
    load."""

    role: str
    name: str
    profile: Profile


@dataclass(frozen=True)
class Loaded:
    """The run under its own load; None if near and far memory are one, or if the load is not
    known. ``why_not``: why it is not known."""

    load: OwnLoad | None
    why_not: str = ""


class MemoriesUnderLoad:
    """Memories with their curves; what is measured is measured once. ``notes``: what could not be
    measured."""

    def __init__(self, request: AdviceRequest, observation: Observation, session: Session) -> None:
        self._observation, self._session = observation, session
        self._loads = parse_background(request.background)
        lines = sum(site.reads + site.writes for site in observation.data.sites)
        self._rate = lines * LINE_BYTES / observation.time_s if observation.time_s > 0 else 0.0
        self._measured: dict[str, Figure | None] = {}
        self.notes: list[str] = []

    def memory(self, side: Side) -> LoadedMemory:
        """The memory, under the background load of its side."""
        found = loaded_memory_of(side.profile) if is_profile(side.name) else self._of_tier(side)
        load = self._loads.get(side.role)
        return found if load is None else replace(found, background=load)

    def profile(self, side: Side) -> Profile:
        """The memory's profile, with its loaded latency if that was measured."""
        known = self._measured.get(side.name)
        if known is None:
            return side.profile
        return _with(side.profile, "read_latency_by_load_ns", known)

    def measure(self, side: Side) -> None:
        """Measure the loaded latency of a tier, if that was not done yet."""
        if is_profile(side.name) or side.name in self._measured:
            return
        alone = side.profile.bandwidth_alone("read") or 0.0
        found = self._measure(side.name)
        if found is not None and not reaches(found, alone):
            found = self._measure(side.name)  # other programs may have ended
        if found is not None and not reaches(found, alone):
            self.notes.append(
                f"{side.name} is not known under load: other programs ran while it was measured, "
                "and all threads together had less bandwidth than one has alone"
            )
            found = None
        self._measured[side.name] = found

    def load(self, inputs: AdviceInputs, far: Memory, near_side: Side, far_side: Side) -> Loaded:
        """The run on these memories. Empty if ``nodes_of`` has no nodes for them: on one memory,
        the observed run already contains its load."""
        if nodes_of(near_side.name, far_side.name) is None or min(inputs.wall_s, inputs.cpu_s) <= 0:
            return Loaded(None)
        all_far, all_near = inputs.coster.costs(far, [[], range(len(inputs.data.sites))])
        try:
            sides = self.memory(near_side), self.memory(far_side)
            return Loaded(OwnLoad(inputs.times, inputs.data, (all_far, all_near), *sides))
        except BadInputError as error:
            return Loaded(None, error.what)

    def _of_tier(self, side: Side) -> LoadedMemory:
        rate = side.profile.largest_bandwidth_alone("read") or 0.0
        if self._rate >= MUCH_TRAFFIC * rate:
            self.measure(side)
        profile = self.profile(side)
        # Without a curve, the bandwidth of one thread is the only known limit of the memory.
        if (
            not {"read_latency_by_load_ns", "read_bandwidth_bytes_per_s"} & set(profile.figures)
            and rate
        ):
            by_threads = profile.figures["read_bandwidth_by_threads_bytes_per_s"]
            alone = by_threads.model_copy(update={"value": rate, "x": None, "points": None})
            alone = alone.model_copy(update={"ranges": None, "low": None, "high": None})
            profile = _with(profile, "read_bandwidth_bytes_per_s", alone)
        return loaded_memory_of(profile)

    def _measure(self, tier: str) -> Figure | None:
        """The loaded latency of a tier; None if this machine has one CPU, or cannot map it."""
        from nearfar.measure import loaded
        from nearfar.measure.host import beyond_caches
        from nearfar.measure.profile import loaded_figure
        from nearfar.measure.session import Effort

        last = self._observation.host.figures.get("l3_bytes")
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) < 2:
            return None
        self._session.progress.note(f"measuring {tier} of this machine under load")
        try:
            result = loaded.measure(
                self._session,
                tier,
                beyond_caches(last),
                cpus,
                int(last.value or 0) if last else 0,
                Effort(_BUDGET_S, epochs=_EPOCHS, apart=False),
            )
        except (NativeError, MachineError):
            return None
        return loaded_figure(result)


def reaches(measured: Figure, alone: float) -> bool:
    """Whether a measured curve has at least the bandwidth of one thread (``alone``, in bytes/s).

    A curve that does not was measured while other programs used the memory.
    """
    return max(bandwidth for _, bandwidth, _ in measured.points or [[1.0, 0.0, 0.0]]) >= alone


def _with(profile: Profile, key: str, figure: Figure) -> Profile:
    return profile.model_copy(update={"figures": {**profile.figures, key: figure}})


def nodes_of(near: str, far: str) -> Nodes | str | None:
    """The nodes of near and far memory, or the reason why no mapping can be on both.

    None if they are one memory. Also None for a profile as near memory with ``dram`` as far memory:
    which node the near memory would have is unknown.
    """
    known = []
    for name in (near, far):
        tier = None if is_profile(name) else parse_tier(name)
        if tier is not None and tier["kind"] not in ("numa", "dram"):
            return f"{name} is not the memory of a node"
        known.append(tier["node"] if tier is not None and tier["kind"] == "numa" else None)
    with_cpus, with_memory = nodes_with("has_cpu"), nodes_with("has_memory")
    dram_node = min(with_cpus & with_memory or with_memory)
    near_node = dram_node if known[0] is None else known[0]
    if known[1] is not None:
        far_node = known[1]
    elif is_profile(far):
        far_node = min(with_memory - with_cpus, default=near_node + 1)
    else:
        far_node = dram_node
    return None if near_node == far_node else (near_node, far_node)
