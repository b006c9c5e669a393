"""NUMA balancing, demotion, transparent and reserved huge pages, swap."""

from __future__ import annotations

from nearfar.machine.doctor.findings import chosen, note, ok, unknown, warning
from nearfar.machine.model import Machine
from nearfar.machine.root import Root
from nearfar.machine.tier_claims import DEMOTION
from nearfar.records.run import Finding
from nearfar.units import format_size

_THP = "sys/kernel/mm/transparent_hugepage"


def numa_balancing(machine: Machine, root: Root) -> Finding:
    """Automatic migration of pages between nodes."""
    check = "NUMA balancing"
    look = root.look("proc/sys/kernel/numa_balancing")
    if len(machine.nodes) < 2:
        return ok(check, "one node: nothing to balance")
    why = "the kernel unmaps pages to see who uses them, and moves them while we measure"
    if look.text is None:
        return unknown(check, look, why)
    if look.text == "0":
        return ok(check, "off")
    kind = "memory tiering" if look.text == "2" else "on"
    return warning(check, kind, why, "sudo sysctl kernel.numa_balancing=0")


def demotion(machine: Machine, root: Root) -> Finding:
    """Migration of cold pages to a slower node when memory is reclaimed."""
    check = "demotion"
    if len(machine.nodes) < 2:
        return ok(check, "one node: nothing to demote")
    look = root.look(DEMOTION)
    why = "when memory is nearly full, the kernel moves cold pages to slower nodes"
    if look.text is None:
        return unknown(check, look, why)
    if look.text in ("0", "false"):
        return ok(check, "off")
    return note(check, "on", why, f"echo 0 | sudo tee /{DEMOTION}, to be sure")


def transparent_huge_pages(_machine: Machine, root: Root) -> Finding:
    """Whether pages=thp is available, and whether other mappings get huge pages by default."""
    check = "transparent huge pages"
    look = root.look(f"{_THP}/enabled")
    why = "page walks are part of latency: 4 KiB and huge pages differ by tens of nanoseconds"
    if look.text is None:
        return unknown(check, look, why)
    mode = chosen(look.text)
    if mode == "never":
        return warning(
            check,
            "never",
            why + "; tiers with pages=thp cannot be measured",
            f"echo madvise | sudo tee /{_THP}/enabled",
        )
    if mode == "always":
        return note(check, "always", why, "say pages=4k or pages=thp of a tier to fix its pages")
    return ok(check, mode)


def huge_pages(_machine: Machine, root: Root) -> Finding:
    """Reserved pages, for pages=2m and pages=1g."""
    pools = []
    for name in root.names("sys/kernel/mm/hugepages"):
        free = root.number(f"sys/kernel/mm/hugepages/{name}/free_hugepages")
        size = name.removeprefix("hugepages-").removesuffix("kB")
        if free and size.isdigit():
            pools.append(f"{free} of {format_size(int(size) << 10)}")
    if pools:
        return ok("huge pages", f"{', '.join(pools)} free")
    return note(
        "huge pages",
        "none reserved",
        "tiers with pages=2m or pages=1g need them",
        "sudo sysctl vm.nr_hugepages=512 reserves 1 GiB of 2 MiB pages; pages=thp needs none",
    )


def swap(_machine: Machine, root: Root) -> Finding:
    """Swap in use or available."""
    look = root.look("proc/swaps")
    why = "a page that was swapped out costs a disk access in the middle of a measurement"
    if look.text is None:
        return unknown("swap", look, why)
    areas = [line.split() for line in look.text.splitlines()[1:]]
    used = sum(int(area[3]) << 10 for area in areas if len(area) > 3 and area[3].isdigit())
    if not areas:
        return ok("swap", "none")
    if not used:
        return note("swap", f"{areas[0][0]} is on and empty", why, "sudo swapoff -a, to be sure")
    return warning("swap", f"{format_size(used)} swapped out", why, "sudo swapoff -a")


CHECKS = (numa_balancing, demotion, transparent_huge_pages, huge_pages, swap)
