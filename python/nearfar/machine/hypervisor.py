"""Detect whether this is a virtual machine, and by which hypervisor."""

from __future__ import annotations

from nearfar import _native
from nearfar.machine.root import Root

#: Hypervisor signatures at CPUID leaf 0x40000000.
_SIGNATURES = {
    b"KVMKVMKVM": "KVM",
    b"Microsoft Hv": "Hyper-V",
    b"VMwareVMware": "VMware",
    b"XenVMMXenVMM": "Xen",
    b"TCGTCGTCGTCG": "QEMU",
    b"VBoxVBoxVBox": "VirtualBox",
    b"bhyve bhyve ": "bhyve",
}
#: Maker or product names in the firmware of virtual machines.
_FIRMWARE_NAMES = {
    "QEMU": "QEMU",
    "KVM": "KVM",
    "VMware": "VMware",
    "VirtualBox": "VirtualBox",
    "Virtual Machine": "Hyper-V",
    "Google Compute Engine": "KVM",
    "HVM domU": "Xen",
    "BHYVE": "bhyve",
}


def firmware_name(hypervisor: str | None) -> str | None:
    """A name in the firmware by which a saved machine's hypervisor is detected; None if none is."""
    return next((word for word, name in _FIRMWARE_NAMES.items() if name == hypervisor), None)


def _from_files(root: Root) -> str | None:
    if (root.text("sys/hypervisor/type") or "") == "xen":
        return "Xen"
    firmware = " ".join(
        root.text(f"sys/class/dmi/id/{name}") or "" for name in ("sys_vendor", "product_name")
    )
    for word, name in _FIRMWARE_NAMES.items():
        if word in firmware:
            return name
    flags = next(
        (line for line in (root.text("proc/cpuinfo") or "").splitlines() if "flags" in line), ""
    )
    return "unknown hypervisor" if "hypervisor" in flags.split() else None


def detect(root: Root) -> str | None:
    """Name of the hypervisor, None on bare metal. Executes CPUID only for a live root."""
    if not root.live:
        return _from_files(root)
    signature = _native.hypervisor()
    if signature is None:
        return None
    return _SIGNATURES.get(signature) or _from_files(root) or "unknown hypervisor"
