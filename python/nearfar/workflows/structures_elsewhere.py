"""Predictions of ``study`` for structures on other memories and on another machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nearfar.measure.timed import Case
    from nearfar.model import structure_results
    from nearfar.model.host_costs import HostCosts
    from nearfar.model.map_work import Constant
    from nearfar.model.pointer_structures import Memory, Software
    from nearfar.model.structure_cases import ShapeCounter
    from nearfar.records.choices import SetName
    from nearfar.records.figures import FigureModel
    from nearfar.records.structures import DeviceSlowdown, PublishedSlowdown


@dataclass(frozen=True)
class Known:
    """A structure of a size, with the timings of it and of its volatile counterpart."""

    name: SetName
    entries: int
    update_percent: int
    software: Software
    twin_software: Software

    def on(self, scale: Constant, entries: int) -> Known:
        """The structure on another processor and with another size. The software time is scaled to
        the processor, and is assumed not to depend on the size."""
        return Known(
            self.name,
            entries,
            self.update_percent,
            self.software.slower(scale),
            self.twin_software.slower(scale),
        )

    @property
    def cases(self) -> tuple[Case, Case]:
        """The structure and its volatile counterpart."""
        from nearfar.model.structure_cases import sets

        return sets(self.name, self.entries, self.update_percent)

    def counted(self, counter: ShapeCounter) -> structure_results.Case:
        """The case with its counted accesses in a host's caches."""
        from nearfar.model import structure_results

        work, twin = self.cases
        return structure_results.Case(
            self.name,
            self.entries,
            self.update_percent,
            counter.shape(work.work),
            self.software,
            counter.shape(twin.work),
            self.twin_software,
        )


def slowdowns_of(
    known: Sequence[Known], costs: HostCosts, near: Memory, counter: ShapeCounter
) -> list[DeviceSlowdown]:
    """Predictions for each structure on every shipped device with a latency."""
    from nearfar.errors import BadInputError
    from nearfar.model import structure_results
    from nearfar.model.devices import far_memory
    from nearfar.profiles import load_profile, profile_names
    from nearfar.records.structures import DeviceSlowdown

    found = []
    for case in (one.counted(counter) for one in known):
        for device in profile_names():
            try:
                far = far_memory(load_profile(device), near)
            except BadInputError:  # a profile of bandwidths, or of a simulator, has no latency
                continue
            predicted = structure_results.predict(case, costs, near, far)
            found.append(
                DeviceSlowdown(
                    structure=case.structure,
                    entries=case.entries,
                    device=device,
                    time_s=predicted.time_s,
                    slowdown=predicted.slowdown,
                    **_uncertainty(predicted, "time_s", "slowdown"),
                )
            )
    return found


def _uncertainty(predicted: FigureModel, *keys: str) -> dict[str, Any]:
    """Intervals and provenance of some figures."""
    return {
        "intervals": {k: predicted.intervals[k] for k in keys},
        "provenance": {k: predicted.provenance[k] for k in keys},
    }


def against_paper(
    known: Sequence[Known], here: HostCosts, cpus: Sequence[int]
) -> list[PublishedSlowdown]:
    """Predictions for the WSCAD 2022 paper's machine next to its means.

    Each structure is predicted for both readings of the paper's DRAM baseline (``baseline``).
    """
    from nearfar.model import slowdowns
    from nearfar.model.devices import far_memory, near_memory
    from nearfar.model.host_costs import costs_of
    from nearfar.model.structure_cases import ShapeCounter
    from nearfar.profiles import load_host, load_profile
    from nearfar.workflows import calibrating

    sheet = load_host(slowdowns.WSCAD_HOST)
    costs = costs_of(sheet)
    near = near_memory(sheet, costs)
    scale = calibrating.scale(costs, here)
    counter = ShapeCounter(costs, cpus[-1])
    there = [one.on(scale, slowdowns.WSCAD_ENTRIES) for one in known]
    counter.beforehand([case for one in there for case in one.cases], cpus)
    devices = [far_memory(load_profile(name), near) for name in slowdowns.WSCAD_DEVICES]
    return [
        reading
        for one in there
        for far in devices
        for reading in _readings(one.counted(counter), costs, near, far)
    ]


def _readings(
    case: structure_results.Case, costs: HostCosts, near: Memory, far: Memory
) -> list[PublishedSlowdown]:
    from nearfar.model import slowdowns, structure_results
    from nearfar.model.structure_cases import SETS
    from nearfar.records.structures import PublishedSlowdown

    published = slowdowns.slowdown(SETS[case.structure][0], far.name, costs.name)
    if published is None:
        return []
    predicted = structure_results.predict(case, costs, near, far, published)
    return [
        PublishedSlowdown(
            structure=case.structure,
            entries=case.entries,
            device=far.name,
            baseline=reading.baseline,
            slowdown=reading.slowdown,
            published_slowdown=published,
            reason=reading.reason or "",
            **_uncertainty(reading, "slowdown"),
        )
        for reading in predicted.readings
    ]
