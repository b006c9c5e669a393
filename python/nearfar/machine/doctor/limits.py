"""Limits of this process: control groups (versions 1 and 2), CPU affinity, hardware counters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from nearfar.machine.doctor.findings import note, ok, unknown, warning
from nearfar.machine.model import Machine
from nearfar.machine.root import Root
from nearfar.records.run import Finding
from nearfar.units import format_size

_GROUPS = "sys/fs/cgroup"


def _group_directories(root: Root, controller: str) -> Iterator[str]:
    """Directories of this process's group and its parents, for a controller of either version."""
    for line in (root.text("proc/self/cgroup") or "").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        tops = []
        if controller in controllers.split(","):
            tops = [f"{_GROUPS}/{controllers}", f"{_GROUPS}/{controller}"]
        elif controllers == "":
            tops = [_GROUPS, f"{_GROUPS}/unified"]
        place = PurePosixPath(path.lstrip("/"))
        for top in tops:
            for below in (place, *place.parents):
                yield str(PurePosixPath(top) / below)


def _memory_limit(root: Root, most: int) -> int | None:
    """The tightest limit in bytes; version 1 writes a huge number for no limit."""
    limits = []
    for directory in _group_directories(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = root.number(f"{directory}/{name}")
            if limit is not None and limit < most:
                limits.append(limit)
    return min(limits, default=None)


def memory_limit(machine: Machine, root: Root) -> Finding:
    """A memory limit kills a measurement that grows beyond it."""
    look = root.look("proc/self/cgroup")
    why = "a mapping beyond the limit is reclaimed, or the process is killed"
    if look.text is None:
        return unknown("memory limit", look, why)
    limit = _memory_limit(root, machine.memory_bytes)
    if limit is None:
        return ok("memory limit", "none below the machine's memory")
    return note(
        "memory limit",
        f"{format_size(limit)} for this control group",
        why,
        "sizes are kept below it; raise memory.max of the group for more",
    )


def _cpu_quota(root: Root) -> float | None:
    """CPUs' worth of time that the tightest group may use."""
    quotas = []
    for directory in _group_directories(root, "cpu"):
        quota, _, period = (root.text(f"{directory}/cpu.max") or "").partition(" ")
        if not quota:
            quota = root.text(f"{directory}/cpu.cfs_quota_us") or ""
            period = root.text(f"{directory}/cpu.cfs_period_us") or ""
        if quota.isdigit() and period.isdigit() and int(period) > 0:
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def cpu_quota(machine: Machine, root: Root) -> Finding:
    """A quota stops threads in the middle of a loop."""
    look = root.look("proc/self/cgroup")
    why = "threads that have used up their share are stopped for the rest of each period"
    if look.text is None:
        return unknown("processor quota", look, why)
    quota = _cpu_quota(root)
    if quota is None:
        return ok("processor quota", "none")
    enough = quota >= len(machine.usable_cpus())
    found = f"{quota:g} processors for this control group"
    if enough:
        return ok("processor quota", found)
    return warning(
        "processor quota",
        found,
        why,
        f"measure with --threads up to {int(quota)}, or set cpu.max of the group to max",
    )


def withheld_processors(machine: Machine, _root: Root) -> Finding:
    """CPUs outside this process's affinity or cpuset."""
    usable, there = len(machine.usable_cpus()), len(machine.cpus)
    if usable == there:
        return ok("usable processors", f"all {there}")
    return note(
        "usable processors",
        f"{usable} of {there}",
        "the others may be busy with work that we cannot see; bandwidth of all is out of reach",
        "start without taskset, or widen the cpuset of the control group",
    )


def counters(_machine: Machine, root: Root) -> Finding:
    """Whether the kernel allows counting hardware events."""
    check = "hardware counters"
    look = root.look("proc/sys/kernel/perf_event_paranoid")
    why = "counters report cache misses and page walks; nearfar measures time without them"
    if look.text is None:
        return unknown(check, look, why)
    level = root.number("proc/sys/kernel/perf_event_paranoid")
    found = f"perf_event_paranoid = {look.text}"
    if level is not None and level <= 2:
        return ok(check, f"{found}: own processes may be counted")
    return note(check, found, why, "sudo sysctl kernel.perf_event_paranoid=2")


CHECKS = (memory_limit, cpu_quota, withheld_processors, counters)
