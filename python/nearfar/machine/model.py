"""The machine record: printed by ``nearfar topo --json -`` and kept in every run.

Sizes are bytes. Nothing here was measured: the figures are reported by kernel, firmware or
hypervisor, and their provenance says so (origin ``claimed``).
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from nearfar.records.figures import FigureModel

Persistence = Literal["none", "emulated", "real", "claimed"]


class _Fact(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Claims(FigureModel):
    """Speed as reported by the firmware (ACPI HMAT, or CDAT of a CXL device)."""

    read_latency_ns: float | None = None
    write_latency_ns: float | None = None
    read_bandwidth_bytes_per_s: float | None = None
    write_bandwidth_bytes_per_s: float | None = None


class Node(Claims):
    """A memory node. ``cpus`` is empty for memory without CPUs (CXL, kmem)."""

    id: int
    size_bytes: int
    cpus: list[int]
    cpuless: bool
    subtype: str | None = Field(
        default=None, description="DRAM, HBM, NVM, CXL..., where it is known"
    )
    distances: dict[int, int] = Field(
        default_factory=dict, description="to each node, 10 being local (ACPI SLIT)"
    )


class Cache(_Fact):
    """One cache and the CPUs that share it."""

    level: int
    type: Literal["unified", "data", "instruction"]
    size_bytes: int
    line_bytes: int | None = None
    ways: int | None = None
    cpus: list[int]


class Cpu(_Fact):
    """A CPU as the scheduler sees it: a hardware thread of a core."""

    id: int
    core: int = Field(description="number among all cores of the machine")
    package: int
    node: int | None = None
    usable: bool = Field(description="this process may run on it")


class DaxDevice(_Fact):
    """A character device of byte-addressable memory."""

    name: str
    path: str
    size_bytes: int | None = None
    node: int | None = Field(default=None, description="the nearest one with processors")
    target_node: int | None = Field(
        default=None, description="the node it is when given to the kernel"
    )
    state: Literal["devdax", "kmem", "unbound"]
    backing: Literal["pmem", "cxl", "soft-reserved", "unknown"]
    region: str | None = Field(default=None, description="the persistent region below it")


class Namespace(_Fact):
    """A part of a persistent region."""

    name: str
    mode: str = Field(description="fsdax, devdax, sector or raw")
    size_bytes: int | None = None
    device: str | None = Field(default=None, description="block device, such as pmem0")
    mount: str | None = None
    dax: bool = Field(default=False, description="mounted with -o dax")


class PmemRegion(_Fact):
    """A memory region that is reported as persistent."""

    name: str
    provider: str | None = Field(
        default=None, description="who offers it: ACPI.NFIT, CXL, e820, virtio-pmem..."
    )
    volatile: bool
    persistence_domain: str | None = Field(
        default=None, description="cpu_cache (eADR) or memory_controller; null if not reported"
    )
    size_bytes: int | None = None
    node: int | None = Field(default=None, description="the nearest one with processors")
    namespaces: list[Namespace]
    persistence: Persistence
    persistence_reason: str


class CxlDevice(_Fact):
    """A CXL memory device."""

    name: str
    node: int | None = None
    volatile_bytes: int
    persistent_bytes: int
    firmware: str | None = None


class NearCache(_Fact):
    """Near memory that caches a node."""

    node: int
    size_bytes: int
    line_bytes: int | None = None
    ways: int | None = None


class MemoryMode(_Fact):
    """Near memory used as a cache of far memory; the two cannot be distinguished by address."""

    evidence: str
    caches: list[NearCache]


class Tier(Claims):
    """A way to map memory on this machine."""

    name: str
    spec: str = Field(description="what --tier takes")
    alias: Literal["near", "far"] | None = None
    capacity_bytes: int | None = None
    free_bytes: int | None = Field(default=None, description="when the record was made")
    node: int | None = Field(default=None, description="it is, or the nearest one of a device")
    distance: int | None = Field(default=None, description="from the node of the near tier")
    dax: Literal["no", "fsdax", "devdax", "kmem"] = "no"
    medium: str = Field(description="what it lies on, in words")
    persistence: Persistence
    persistence_reason: str
    flushes_needed: bool | None = Field(
        default=None, description="to persist: false on eADR; null where nothing persists"
    )


class Machine(FigureModel):
    """A machine. ``id`` does not change with reboots and kernel updates."""

    id: str
    processor: str
    kernel: str
    virtual_machine: str | None = None
    memory_bytes: int
    nodes: list[Node]
    caches: list[Cache]
    cpus: list[Cpu]
    memory_mode: MemoryMode | None = None
    pmem_regions: list[PmemRegion]
    dax_devices: list[DaxDevice]
    cxl_devices: list[CxlDevice]
    tiers: list[Tier]

    def usable_cpus(self) -> list[int]:
        """CPUs that this process may run on, in order."""
        return sorted(cpu.id for cpu in self.cpus if cpu.usable)

    def one_cpu_per_core(self) -> list[int]:
        """The first usable CPU of each core, without hyper-thread siblings."""
        first: dict[int, int] = {}
        for cpu in sorted(self.cpus, key=lambda cpu: cpu.id):
            if cpu.usable:
                first.setdefault(cpu.core, cpu.id)
        return sorted(first.values())

    def cores_first(self) -> list[int]:
        """All usable CPUs: one of each core first, then their siblings."""
        first = self.one_cpu_per_core()
        return first + [cpu for cpu in self.usable_cpus() if cpu not in first]

    def last_cache_bytes(self) -> int | None:
        """Reported size of the last cache of the usable CPUs; None if not reported."""
        usable = set(self.usable_cpus())
        mine = [c for c in self.caches if c.type != "instruction" and usable & set(c.cpus)]
        return max(mine, key=lambda c: (c.level, c.size_bytes)).size_bytes if mine else None
