"""The host ``this``: what this machine's kernel or hypervisor says of its processor."""

from __future__ import annotations

import os
import re

from nearfar.machine.model import Cache, Machine
from nearfar.machine.root import Root
from nearfar.machine.topology import this_machine
from nearfar.records.figures import Origin
from nearfar.records.profile import Figure, Host, unit_of

_SOURCE, _PROCESSOR = "kernel", "processor"


def this_host() -> Host:
    """Describe the machine we run on; latencies are absent: they have not been measured yet."""
    from nearfar._native import data_tlb

    host = host_of(this_machine(), frequency_of(Root()), os.sysconf("SC_PAGE_SIZE"))
    figures = dict(host.figures)
    for name, (entries, ways) in zip(("dtlb", "stlb"), data_tlb(), strict=False):
        figures[f"{name}_entries"] = _claimed(f"{name}_entries", entries, _PROCESSOR)
        figures[f"{name}_ways"] = _claimed(f"{name}_ways", ways, _PROCESSOR)
    return host.model_copy(
        update={
            "figures": figures,
            "sources": {**host.sources, _PROCESSOR: "CPUID"},
        }
    )


def host_of(machine: Machine, frequency: Figure | None, page_bytes: int) -> Host:
    """A host out of a machine record: figures that are claimed, not measured."""
    mine = [cpu for cpu in machine.cpus if cpu.usable]
    usable = {cpu.id for cpu in mine}
    numbers: dict[str, float | None] = {
        "cores": len({cpu.core for cpu in mine if cpu.package == mine[0].package}),
        "threads": len(mine),
        "sockets": len({cpu.package for cpu in mine}),
        "page_bytes": page_bytes,
        "memory_bytes": machine.memory_bytes,
    }
    caches = [c for c in machine.caches if c.type != "instruction" and usable & set(c.cpus)]
    for cache in sorted(caches, key=lambda c: c.size_bytes):
        numbers |= _cache(cache)
    figures = {"frequency_hz": frequency} if frequency else {}
    figures |= {key: _claimed(key, value) for key, value in numbers.items() if value is not None}
    source = (
        f"the hypervisor ({machine.virtual_machine})" if machine.virtual_machine else "firmware"
    )
    return Host(
        name="this",
        title=machine.processor,
        machine=machine.id,
        description="The machine nearfar runs on, as it describes itself. Caches are per instance "
        "and may be larger than what is really there on a virtual machine. Latencies are missing: "
        "`nearfar study` measures them.",
        sources={_SOURCE: f"as the kernel has it from {source}"},
        figures=figures,
    )


def _cache(cache: Cache) -> dict[str, float | None]:
    level = f"l{cache.level}{'d' if cache.type == 'data' else ''}"
    return {
        f"{level}_bytes": cache.size_bytes,
        f"{level}_ways": cache.ways,
        "line_bytes": cache.line_bytes,
    }


def frequency_of(root: Root) -> Figure | None:
    """The base frequency, or the clock of the moment; None if the kernel reports neither."""
    khz = root.number("sys/devices/system/cpu/cpu0/cpufreq/base_frequency")
    if khz:
        return _claimed("frequency_hz", khz * 1e3)
    reported = root.text("proc/cpuinfo") or ""
    named = re.search(r"model name.*@ ([0-9.]+)GHz", reported)
    if named:
        return _claimed("frequency_hz", float(named[1]) * 1e9)
    clock = re.search(r"^cpu MHz\s*: ([0-9]+\.?[0-9]*)$", reported, re.MULTILINE)
    if clock is None or float(clock[1]) <= 0:
        return None
    figure = _claimed("frequency_hz", float(clock[1]) * 1e6)
    return figure.model_copy(
        update={
            "confidence": "C",
            "note": "the first CPU's clock when asked, which may be above "
            "or below the base frequency; the kernel reports no base frequency",
        }
    )


def _claimed(key: str, value: float, source: str = _SOURCE) -> Figure:
    return Figure(
        unit=unit_of(key) or "",
        value=value,
        source=source,
        confidence="B",
        origin=Origin.CLAIMED,
    )
