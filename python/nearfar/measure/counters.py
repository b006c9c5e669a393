"""Counters of a benchmark's measured region: events by name, in groups that fit the PMU.

Each group is tried first. Unsupported events are left out, and listed with the reason. Hardware
events count user code only; software events count what the kernel does for the thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nearfar import _native
from nearfar._native import NativeError

#: Groups of pairs: a field of the record, and names of libpfm4, of which the first known one is
#: used.
GROUPS: tuple[tuple[tuple[str, tuple[str, ...]], ...], ...] = (
    (("instructions", ("perf::INSTRUCTIONS",)), ("cycles", ("perf::CYCLES",))),
    (("llc_loads", ("perf::LLC-LOADS",)), ("llc_load_misses", ("perf::LLC-LOAD-MISSES",))),
    (("llc_stores", ("perf::LLC-STORES",)), ("llc_store_misses", ("perf::LLC-STORE-MISSES",))),
    (("l3_stall_cycles", ("CYCLE_ACTIVITY:STALLS_L3_MISS", "CYCLE_ACTIVITY:STALLS_L3_MISSES")),),
    (
        ("page_faults", ("perf::PERF_COUNT_SW_PAGE_FAULTS",)),
        ("context_switches", ("perf::PERF_COUNT_SW_CONTEXT_SWITCHES",)),
        ("task_clock_ns", ("perf::PERF_COUNT_SW_TASK_CLOCK",)),
    ),
)
#: Fields that a cache model can provide instead.
CACHE_FIELDS = ("llc_loads", "llc_load_misses", "llc_stores", "llc_store_misses")
SOFTWARE_FIELDS = tuple(field for field, _ in GROUPS[-1])


@dataclass(frozen=True)
class Events:
    """The supported events in groups, and the reasons why other fields are missing."""

    groups: tuple[tuple[str, ...], ...]
    fields: Mapping[str, str]
    missing: Mapping[str, str]

    def read(
        self, counted: Mapping[str, tuple[float, float]]
    ) -> tuple[dict[str, float], dict[str, str]]:
        """Values by field, and the fields whose group was never scheduled."""
        values = {self.fields[name]: value for name, (value, share) in counted.items() if share > 0}
        silent = {
            self.fields[name]: "its group never had a turn on the processor's counters"
            for name, (_, share) in counted.items()
            if share == 0
        }
        return values, silent


def available() -> Events:
    """Try each group on this thread."""
    groups: list[tuple[str, ...]] = []
    fields: dict[str, str] = {}
    missing: dict[str, str] = {}
    for group in GROUPS:
        names, reason = _counted(group)
        if reason:
            missing.update({field: reason for field, _ in group})
            continue
        groups.append(names)
        fields.update({name: field for name, (field, _) in zip(names, group, strict=True)})
    return Events(tuple(groups), fields, missing)


def _counted(group: Sequence[tuple[str, tuple[str, ...]]]) -> tuple[tuple[str, ...], str]:
    """Names that this machine counts together, or the reason why it does not."""
    names = []
    for _, choices in group:
        reason = ""
        for name in choices:
            reason = _refusal([name])
            if not reason:
                names.append(name)
                break
        if reason:
            return (), reason
    return tuple(names), _refusal(names)


def _refusal(names: Sequence[str]) -> str:
    try:
        _native.check_counters(list(names))
    except NativeError as error:
        return str(error.args[1])
    return ""
