"""Frequency, turbo, hyper-threads, prefetchers, clock source."""

from __future__ import annotations

from collections import Counter

from nearfar.machine.doctor.findings import note, ok, unknown, warning
from nearfar.machine.model import Machine
from nearfar.machine.root import Look, Root
from nearfar.records.run import Finding

_CPU = "sys/devices/system/cpu"
_WHY_FREQUENCY = "latency in nanoseconds and cache bandwidth follow the clock of the core"


def governor(machine: Machine, root: Root) -> Finding:
    """The frequency governor of the usable CPUs."""
    looks = [
        root.look(f"{_CPU}/cpu{cpu}/cpufreq/scaling_governor") for cpu in machine.usable_cpus()
    ]
    governors = Counter(look.text for look in looks if look.text)
    if not governors:
        look = looks[0] if looks else Look(None, "no usable processor")
        return unknown(
            "frequency governor", look, _WHY_FREQUENCY + "; virtual machines rarely show it"
        )
    found = ", ".join(f"{name} on {count} processors" for name, count in governors.items())
    if set(governors) == {"performance"}:
        return ok("frequency governor", found)
    return warning(
        "frequency governor",
        found,
        _WHY_FREQUENCY + ", and this governor lowers it when idle",
        "sudo cpupower frequency-set -g performance",
    )


def turbo(_machine: Machine, root: Root) -> Finding:
    """Turbo or boost, read from either driver's switch."""
    why = "with turbo the clock depends on temperature and on how many cores work"
    disabled = root.number(f"{_CPU}/intel_pstate/no_turbo")
    boost = root.number(f"{_CPU}/cpufreq/boost")
    if disabled is None and boost is None:
        return unknown("turbo", root.look(f"{_CPU}/cpufreq/boost"), why)
    if disabled == 1 or (disabled is None and boost == 0):
        return ok("turbo", "off")
    fix = (
        f"echo 1 | sudo tee /{_CPU}/intel_pstate/no_turbo"
        if disabled is not None
        else f"echo 0 | sudo tee /{_CPU}/cpufreq/boost"
    )
    return note("turbo", "on", why, fix + " (for figures that must compare from day to day)")


def hyper_threads(machine: Machine, _root: Root) -> Finding:
    """Siblings of a core share its caches and its outstanding misses."""
    usable = len(machine.usable_cpus())
    cores = len(machine.one_cpu_per_core())
    if usable == cores:
        return ok("hyper-threads", f"{cores} usable processors, each a core of its own")
    return note(
        "hyper-threads",
        f"{usable} usable processors on {cores} cores",
        "siblings share one core's caches and its outstanding misses",
        "nothing: threads are placed one a core first; for bare cores: "
        "echo off | sudo tee /sys/devices/system/cpu/smt/control",
    )


def prefetchers(machine: Machine, root: Root) -> Finding:
    """Intel's hardware prefetchers, by their documented switch (MSR 0x1a4)."""
    check = "prefetchers"
    why = "they hide latency of regular accesses; random chases are made so that they cannot help"
    if "intel" not in machine.processor.lower():
        return Finding(
            check=check,
            level="unknown",
            why=why,
            found="no switch that is common to this maker's processors",
        )
    try:
        with (root.path / "dev/cpu/0/msr").open("rb") as file:
            file.seek(0x1A4)
            switches = int.from_bytes(file.read(8), "little")
    except OSError as error:
        look = Look(None, f"/dev/cpu/0/msr: {error.strerror}")
        return unknown(check, look, why, "sudo modprobe msr, and run as root, to see them")
    off = (switches & 0xF).bit_count()
    if off == 0:
        return ok(check, "all four on, as usual")
    return note(
        check,
        f"{off} of four switched off",
        why + "; sequential figures will be low",
        "sudo wrmsr -a 0x1a4 0",
    )


def clock(_machine: Machine, root: Root) -> Finding:
    """The clock source used for all timings."""
    look = root.look("sys/devices/system/clocksource/clocksource0/current_clocksource")
    why = "other clocks than the processor's counter cost a system call or a trap a reading"
    if look.text is None:
        return unknown("clock source", look, why)
    if look.text in {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page"}:
        return ok("clock source", look.text)
    return warning(
        "clock source",
        look.text,
        why,
        "see `dmesg | grep -i tsc` for why the kernel left it; boot with clocksource=tsc",
    )


CHECKS = (governor, turbo, hyper_threads, prefetchers, clock)
