"""Classify the persistence of memory. MAP_SYNC proves nothing: the kernel grants it on DRAM, too.

The provider of the memory decides: ACPI's NFIT table and CXL devices describe hardware, a
``memmap=`` region is DRAM that the kernel command line declared persistent, and the claims of a
hypervisor cannot be verified.
"""

from __future__ import annotations

from dataclasses import dataclass

from nearfar.machine.model import Persistence


@dataclass(frozen=True)
class PersistenceVerdict:
    """The persistence of a memory, the evidence, and whether stores to it must be flushed."""

    persistence: Persistence
    reason: str
    flushes_needed: bool | None = None


VOLATILE = PersistenceVerdict("none", "ordinary memory: gone when power is")
KMEM = PersistenceVerdict(
    "none", "the kernel uses it as ordinary memory (kmem): whatever it keeps is lost"
)
SHM = PersistenceVerdict("emulated", "tmpfs is DRAM: it outlives the process, not the power", True)
SOFT_RESERVED = PersistenceVerdict(
    "none", "set aside by the firmware as special memory, with no promise"
)
UNKNOWN_DAX = PersistenceVerdict(
    "claimed", "a DAX device that belongs to no persistent region we know", True
)

#: The kernel's names of providers that describe hardware, and how to print them.
_VOUCHERS = {"ACPI.NFIT": "the ACPI NFIT table", "CXL": "a CXL device"}


def _flushes(domain: str | None) -> tuple[bool, str]:
    if domain == "cpu_cache":
        return False, "the platform saves its caches on power loss (eADR), no flushes needed"
    if domain == "memory_controller":
        return True, "flush and fence needed (ADR)"
    return True, "flush and fence needed, and the platform does not report its power-fail domain"


def of_region(
    provider: str | None, volatile: bool, domain: str | None, virtual_machine: str | None
) -> PersistenceVerdict:
    """Judge a region by its provider, its kind and its persistence domain."""
    if volatile:
        return PersistenceVerdict("none", "the region is marked volatile")
    flushes, how = _flushes(domain)
    if provider == "e820":
        return PersistenceVerdict(
            "emulated", "an e820 region, as memmap= on the boot line makes one of DRAM", True
        )
    if virtual_machine is not None:
        return PersistenceVerdict(
            "claimed",
            f"as claimed by the host of this virtual machine ({virtual_machine}); {how}",
            flushes,
        )
    voucher = _VOUCHERS.get(provider or "")
    if voucher is None:
        return PersistenceVerdict(
            "claimed", f"offered by {provider or 'an unknown provider'}; {how}", flushes
        )
    return PersistenceVerdict("real", f"vouched for by {voucher}; {how}", flushes)


def of_file(
    file_system: str, device: str | None, virtual_machine: str | None
) -> PersistenceVerdict:
    """Judge a file persisted by msync, by the file system and the block device below it."""
    if file_system in {"tmpfs", "ramfs", "devtmpfs"} or (device or "").startswith(("ram", "zram")):
        return PersistenceVerdict(
            "emulated", f"{device or file_system} is memory: gone when power is", True
        )
    if device is None or device.startswith("loop"):
        return PersistenceVerdict(
            "claimed", f"{file_system} on no local disk; persisted by msync", True
        )
    if virtual_machine is not None:
        return PersistenceVerdict(
            "claimed", "persisted by msync, as far as the host's disk keeps it", True
        )
    return PersistenceVerdict("real", "persisted by msync to the disk", True)
