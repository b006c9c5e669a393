"""Persistent regions, DAX devices and CXL devices from ``/sys/bus``.

These are short text files with documented names, so they are read here and not in the native core;
hwloc, which the core reads, does not describe them. The sysfs path gives the relations:
``…/ndbus0/region1/dax1.0/dax1.0`` belongs to ``region1``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from nearfar.machine.model import CxlDevice, DaxDevice, Namespace, PmemRegion
from nearfar.machine.mounts import Mount
from nearfar.machine.persistence import of_region
from nearfar.machine.root import Root

_ND = "sys/bus/nd/devices"
_DAX = "sys/bus/dax/devices"
_CXL = "sys/bus/cxl/devices"

#: The kernel's names of namespace modes, and the names that ndctl uses.
_MODES = {"memory": "fsdax", "dax": "devdax", "safe": "sector"}
#: `nd_volatile` is the kernel's device type of a region without persistence.
_VOLATILE_TYPES = {"nd_volatile"}


def _node(root: Root, name: str) -> int | None:
    """A node number, or None if not reported; the kernel writes -1 for none."""
    node = root.number(name)
    return node if node is not None and node >= 0 else None


def _ancestor(path: str, pattern: str) -> str | None:
    return next((part for part in path.split("/") if re.fullmatch(pattern, part)), None)


def _block_device(root: Root, region_path: str, namespace: str) -> str | None:
    """The disk of a namespace; it is below the pfn or btt device that claimed it, if any."""
    holder = root.text(f"{region_path}/{namespace}/holder")
    for owner in (holder, namespace):
        disks = root.names(f"{region_path}/{owner}/block") if owner else []
        if disks:
            return disks[0]
    return None


def _namespace(root: Root, region_path: str, name: str, mounts: list[Mount]) -> Namespace:
    mode = root.text(f"{region_path}/{name}/mode") or "raw"
    device = _block_device(root, region_path, name)
    mount = next((m for m in mounts if device and m.source == f"/dev/{device}"), None)
    return Namespace(
        name=name,
        mode=_MODES.get(mode, mode),
        size_bytes=root.number(f"{region_path}/{name}/size"),
        device=device,
        mount=mount.point if mount else None,
        dax=mount.dax if mount else False,
    )


def pmem_regions(root: Root, mounts: list[Mount], virtual_machine: str | None) -> list[PmemRegion]:
    """Regions of the NVDIMM bus with their namespaces; empty seeds are left out."""
    regions = []
    for name in root.names(_ND):
        if not re.fullmatch(r"region\d+", name):
            continue
        path = root.real(f"{_ND}/{name}")
        bus = _ancestor(path, r"ndbus\d+")
        provider = root.text(f"{_ND}/{bus}/provider") if bus else None
        volatile = root.property(f"{path}/uevent", "DEVTYPE") in _VOLATILE_TYPES
        domain = root.text(f"{path}/persistence_domain") or None
        spaces = [
            _namespace(root, path, child, mounts)
            for child in root.names(path)
            if re.fullmatch(r"namespace[\d.]+", child) and root.number(f"{path}/{child}/size")
        ]
        verdict = of_region(provider, volatile, domain, virtual_machine)
        regions.append(
            PmemRegion(
                name=name,
                provider=provider,
                volatile=volatile,
                persistence_domain=domain,
                size_bytes=root.number(f"{path}/size"),
                node=_node(root, f"{path}/numa_node"),
                namespaces=spaces,
                persistence=verdict.persistence,
                persistence_reason=verdict.reason,
            )
        )
    return regions


def nvdimms(root: Root) -> list[str]:
    """Names of the DIMMs that the NVDIMM bus shows, with or without a region."""
    return [name for name in root.names(_ND) if re.fullmatch(r"nmem\d+", name)]


_STATES: dict[str, Literal["devdax", "kmem"]] = {"device_dax": "devdax", "kmem": "kmem"}


def _backing(path: str, region: str | None) -> Literal["pmem", "cxl", "soft-reserved", "unknown"]:
    if region is not None:
        return "pmem"
    if _ancestor(path, r"dax_region\d+"):
        return "cxl"
    return "soft-reserved" if _ancestor(path, r"hmem(\.\d+)?") else "unknown"


def dax_devices(root: Root) -> list[DaxDevice]:
    """Devices of the DAX bus: those that programs can map and those that the kernel uses (kmem)."""
    devices = []
    for name in root.names(_DAX):
        path = root.real(f"{_DAX}/{name}")
        size = root.number(f"{path}/size")
        if not size:
            continue  # a seed, from which a device can be made
        region = _ancestor(path, r"region\d+") if _ancestor(path, r"ndbus\d+") else None
        driver = root.property(f"{path}/uevent", "DRIVER")
        devices.append(
            DaxDevice(
                name=name,
                path=f"/dev/{name}",
                size_bytes=size,
                node=_node(root, f"{path}/numa_node"),
                target_node=_node(root, f"{path}/target_node"),
                state=_STATES.get(driver or "", "unbound"),
                backing=_backing(path, region),
                region=region,
            )
        )
    return devices


def cxl_devices(root: Root) -> list[CxlDevice]:
    """Memory devices of the CXL bus."""
    return [
        CxlDevice(
            name=name,
            node=_node(root, f"{_CXL}/{name}/numa_node"),
            volatile_bytes=root.number(f"{_CXL}/{name}/ram/size") or 0,
            persistent_bytes=root.number(f"{_CXL}/{name}/pmem/size") or 0,
            firmware=root.text(f"{_CXL}/{name}/firmware_version"),
        )
        for name in root.names(_CXL)
        if re.fullmatch(r"mem\d+", name)
    ]


@dataclass(frozen=True)
class Devices:
    """Everything the device buses report."""

    regions: list[PmemRegion]
    dax: list[DaxDevice]
    cxl: list[CxlDevice]


def read_devices(root: Root, mounts: list[Mount], virtual_machine: str | None) -> Devices:
    """Read the three buses."""
    return Devices(
        pmem_regions(root, mounts, virtual_machine), dax_devices(root), cxl_devices(root)
    )
