"""Free space of the tiers, and the health of far memory as reported by ``ndctl`` and ``cxl``."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

from nearfar.machine.doctor.findings import note, ok, warning
from nearfar.machine.model import Machine
from nearfar.machine.root import Root
from nearfar.records.run import Finding
from nearfar.units import GIB, format_size

#: With less, a tier cannot hold arrays several times as large as a last-level cache.
_LITTLE_ROOM = GIB
_COMMAND_SECONDS = 5.0


def room(machine: Machine, root: Root) -> Finding:
    """Free bytes of each tier."""
    if not root.live:
        return note("room in the tiers", "not known of a described machine")
    known = [(tier.spec, tier.free_bytes) for tier in machine.tiers if tier.free_bytes is not None]
    found = ", ".join(f"{spec} {format_size(free)}" for spec, free in known)
    if all(free >= _LITTLE_ROOM for _, free in known):
        return ok("room in the tiers", f"free: {found}")
    return warning(
        "room in the tiers",
        f"free: {found}",
        "working sets must be several times the last cache, or the cache is measured",
        "free some space, or give another directory: --tier file:DIR",
    )


def _ask(*command: str) -> tuple[Any, str]:
    """A tool's JSON, or a description of the failure."""
    if shutil.which(command[0]) is None:
        return None, f"{command[0]} is not installed"
    try:
        run = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMMAND_SECONDS,
            check=False,
        )
        return json.loads(run.stdout or "[]"), ""
    except (OSError, subprocess.TimeoutExpired, json.JSONDecodeError) as error:
        return None, f"{' '.join(command)} failed: {error}"


def _ill(devices: Any) -> list[str]:
    """Devices with a reported health other than ok; ``ndctl`` and ``cxl`` use the same format."""
    found = []
    for device in devices if isinstance(devices, list) else []:
        health = device.get("health", {})
        states = [health.get("health_state"), health.get("maintenance_needed") or None]
        bad = [str(s) for s in states if s not in (None, "ok", False)]
        if bad:
            name = device.get("dev") or device.get("memdev") or "a device"
            found.append(f"{name} ({', '.join(bad)})")
    return found


def _health(check: str, present: int, what: str, root: Root, command: tuple[str, ...]) -> Finding:
    if not present:
        return ok(check, f"this machine shows no {what}")
    shown = f"{present} {what}"
    if not root.live:
        return note(check, f"{shown}; health is not known of a described machine")
    devices, trouble = _ask(*command)
    why = "worn or failing devices slow down, or withdraw persistence, before they fail"
    if trouble:
        return Finding(
            check=check,
            level="unknown",
            found=f"{shown}; {trouble}",
            why=why,
            fix=f"install {command[0]}, and run `sudo {' '.join(command)}`",
        )
    ill = _ill(devices)
    if ill:
        return warning(check, f"{shown}; {', '.join(ill)}", why, f"sudo {' '.join(command)}")
    return ok(check, f"{shown}; {command[0]} reports no problem")


def nvdimm_health(machine: Machine, root: Root) -> Finding:
    """The health of NVDIMMs as reported by ``ndctl``."""
    count = len(machine.pmem_regions)
    return _health("NVDIMM health", count, "persistent regions", root, ("ndctl", "list", "-DH"))


def cxl_health(machine: Machine, root: Root) -> Finding:
    """The health of CXL memory as reported by ``cxl``."""
    count = len(machine.cxl_devices)
    return _health("CXL health", count, "CXL memory devices", root, ("cxl", "list", "-MH"))


CHECKS = (room, nvdimm_health, cxl_health)
