"""Persistent memory: what this machine has, how to emulate it, and how tmpfs differs."""

from __future__ import annotations

from nearfar.machine.doctor.findings import note, ok, warning
from nearfar.machine.model import Machine
from nearfar.machine.root import Root
from nearfar.records.run import Finding

_EMULATE = (
    "boot with memmap=4G!12G (4 GiB of DRAM from address 12 GiB on, inside a usable range of "
    "`dmesg | grep e820`), then `mkfs.ext4 /dev/pmem0 && mount -o dax=always /dev/pmem0 /mnt/pmem0`"
)


def persistent_memory(machine: Machine, _root: Root) -> Finding:
    """The best persistence among the tiers that map their medium directly."""
    check = "persistent memory"
    kinds = {t.persistence for t in machine.tiers if t.dax in {"fsdax", "devdax"}}
    if "real" in kinds:
        return ok(check, "there is a tier with real persistence")
    if "claimed" in kinds:
        return note(check, "persistence as the host claims it", "a guest cannot verify it")
    if "emulated" in kinds:
        return note(
            check,
            "emulated in DRAM (memmap=)",
            "costs of flushes and of DAX are real, the medium's speed is DRAM's, and nothing "
            "outlives a power failure",
        )
    return note(
        check,
        "none that a program can map",
        "flush and fence costs on a DAX mapping cannot be measured here",
        _EMULATE,
    )


def tmpfs(machine: Machine, _root: Root) -> Finding:
    """Whether this machine has a tier ``shm:``, which emulates persistent memory."""
    check = "shm: tier"
    if not any(tier.spec.startswith("shm:") for tier in machine.tiers):
        return note(
            check,
            "no tmpfs at /dev/shm",
            "shm: needs a directory on tmpfs",
            "sudo mount -t tmpfs tmpfs /dev/shm, or give one: --tier shm:DIR",
        )
    return note(
        check,
        "tmpfs emulates persistent memory in DRAM",
        "its pages are the page cache: no MAP_SYNC, no DAX faults, 4 KiB pages unless "
        "shmem_enabled says otherwise, and it may be swapped; a memmap= region has "
        "none of these differences",
        "use memmap= where faults, huge pages or MAP_SYNC matter",
    )


def unused_namespaces(machine: Machine, _root: Root) -> Finding:
    """Namespaces that become tiers with a mount option."""
    check = "namespaces"
    idle = [
        space
        for region in machine.pmem_regions
        for space in region.namespaces
        if space.mode == "fsdax" and not (space.mount and space.dax)
    ]
    empty = [region.name for region in machine.pmem_regions if not region.namespaces]
    if idle:
        name = idle[0].device or idle[0].name
        state = f"mounted at {idle[0].mount} without dax" if idle[0].mount else "not mounted"
        return warning(
            check,
            f"{name} is {state}",
            "it becomes a tier when mounted with -o dax",
            f"mount -o dax=always /dev/{name} /mnt/{name} (ext4 or xfs)",
        )
    if empty:
        return note(
            check,
            f"{', '.join(empty)} without a namespace",
            "a tier requires a namespace",
            "sudo ndctl create-namespace --mode fsdax, or --mode devdax",
        )
    return ok(check, "none unused")


def memory_mode(machine: Machine, _root: Root) -> Finding:
    """Near memory as a cache of far memory (memory mode), which mixes both in every figure."""
    if machine.memory_mode is None:
        return ok("memory mode", "near memory is not used as a cache")
    return warning(
        "memory mode",
        machine.memory_mode.evidence,
        "figures mix near and far memory by hit rate, and nothing persists",
        "switch to app-direct mode in the firmware set-up (ipmctl create -goal), or measure with "
        "working sets well above the near memory",
    )


CHECKS = (persistent_memory, tmpfs, unused_namespaces, memory_mode)
