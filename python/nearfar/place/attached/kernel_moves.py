"""Does the kernel move pages back? Its counters of migrations, and its settings that cause them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

BALANCING = "/proc/sys/kernel/numa_balancing"
DEMOTION = "/sys/kernel/mm/numa/demotion_enabled"
_OFF = ("", "0", "false")


@dataclass(frozen=True)
class KernelSetting:
    """A setting under which the kernel moves pages between nodes, and what turns it off."""

    path: str
    value: str
    command: str


def moving_settings(root: Path = Path("/")) -> list[KernelSetting]:
    """Settings that are on."""
    commands = {
        BALANCING: "sysctl kernel.numa_balancing=0",
        DEMOTION: f"echo false > {DEMOTION}",
    }
    found = []
    for path, command in commands.items():
        try:
            value = (root / path.lstrip("/")).read_text().strip()
        except OSError:
            continue
        if value not in _OFF:
            found.append(KernelSetting(path, value, command))
    return found


def migrated_pages() -> int:
    """Pages that were moved on this machine since it started, for whatever reason (vmstat)."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return next(
        (int(line.split()[1]) for line in lines if line.startswith("pgmigrate_success ")), 0
    )
