"""The files of ``/proc`` and ``/sys`` that a saved machine holds, and what is kept of each.

This list is complete: a file that is not here is not saved. The readers of :mod:`nearfar.machine`
use all of them except the ACPI tables. Control groups are left out: their names are those of users,
services and containers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

#: Text of a file to the text that is saved.
Reduction = Callable[[str], str]


def _all(text: str) -> str:
    return text


def lines_of(*keys: str) -> Reduction:
    """Keep the lines with these keys, up to the first empty line."""
    key = re.compile(rf"({'|'.join(map(re.escape, keys))})\s*[:=]")

    def reduce(text: str) -> str:
        return "\n".join(line for line in text.partition("\n\n")[0].splitlines() if key.match(line))

    return reduce


def memory_of_node(text: str) -> str:
    """Total and free bytes of a node, in lines such as ``Node 1 MemFree:  123 kB``."""
    return "\n".join(re.findall(r"^Node \d+ Mem(?:Total|Free):.*$", text, re.MULTILINE))


def times_of_all_cpus(text: str) -> str:
    """The first line of ``/proc/stat``."""
    return "\n".join(re.findall(r"\Acpu [ \d]+$", text, re.MULTILINE))


def without_names(text: str) -> str:
    """``/proc/swaps`` with numbers in place of the paths."""
    head, *areas = text.splitlines() or [""]
    return "\n".join([head, *(re.sub(r"^\S+", f"swap{i}", area) for i, area in enumerate(areas))])


_NODE = "sys/devices/system/node/node*"
_CPU = "sys/devices/system/cpu"
_CLAIMS = ("read_latency", "write_latency", "read_bandwidth", "write_bandwidth")

#: Patterns of paths, and what is kept of the file.
FILES: dict[str, Reduction] = {
    f"{_NODE}/cpulist": _all,
    f"{_NODE}/meminfo": memory_of_node,
    **{f"{_NODE}/access{i}/initiators/{claim}": _all for i in (0, 1) for claim in _CLAIMS},
    f"{_CPU}/cpu*/cpufreq/scaling_governor": _all,
    f"{_CPU}/cpu*/cpufreq/base_frequency": _all,
    f"{_CPU}/intel_pstate/no_turbo": _all,
    f"{_CPU}/cpufreq/boost": _all,
    "sys/devices/system/clocksource/clocksource0/current_clocksource": _all,
    "sys/kernel/mm/transparent_hugepage/enabled": _all,
    "sys/kernel/mm/hugepages/hugepages-*/free_hugepages": _all,
    "sys/devices/virtual/memory_tiering/memory_tier*/nodelist": _all,
    "sys/kernel/mm/mempolicy/weighted_interleave/node*": _all,
    "sys/kernel/mm/numa/demotion_enabled": _all,
    "proc/sys/kernel/numa_balancing": _all,
    "proc/sys/kernel/perf_event_paranoid": _all,
    "proc/loadavg": _all,
    "proc/stat": times_of_all_cpus,
    "proc/swaps": without_names,
    "proc/meminfo": lines_of("MemTotal", "MemAvailable"),
    "proc/cpuinfo": lines_of(
        "vendor_id", "cpu family", "model", "model name", "stepping", "cpu MHz", "flags"
    ),
}

_UEVENT = lines_of("DEVTYPE", "DRIVER")

#: Devices of a bus by folder: patterns of names, and for each the files below the device.
DEVICES: dict[str, dict[str, dict[str, Reduction]]] = {
    "sys/bus/nd/devices": {
        r"ndbus\d+": {"provider": _all},
        r"nmem\d+": {},
        r"region\d+": {
            "uevent": _UEVENT,
            "persistence_domain": _all,
            "size": _all,
            "numa_node": _all,
            "namespace*/size": _all,
            "namespace*/mode": _all,
            "namespace*/holder": _all,
            "*/block/pmem*/size": _all,
        },
    },
    "sys/bus/dax/devices": {
        r"dax[\d.]+": {"uevent": _UEVENT, "size": _all, "numa_node": _all, "target_node": _all}
    },
    "sys/bus/cxl/devices": {
        r"mem\d+": {
            "numa_node": _all,
            "ram/size": _all,
            "pmem/size": _all,
            "firmware_version": _all,
        }
    },
}

#: Tables of the firmware, saved byte by byte where they can be read, which requires root. They hold
#: addresses, node numbers and figures, and the maker's name in their header, but no serial number.
TABLES = tuple(f"sys/firmware/acpi/tables/{name}" for name in ("HMAT", "SLIT", "SRAT"))


def devices_of(bus: str, names: list[str]) -> Iterator[tuple[str, dict[str, Reduction]]]:
    """The devices of a bus that are saved, with the files of each."""
    for name in names:
        for pattern, files in DEVICES[bus].items():
            if re.fullmatch(pattern, name):
                yield name, files
