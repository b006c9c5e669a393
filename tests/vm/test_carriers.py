"""Carriers of a pool: tmpfs, a memmap= region, ext4-dax and xfs-dax, and what works on each.

Times in an emulator mean nothing and are not taken.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vm.conftest import make_fsdax
from vm.machine import ROOT, Machine

pytestmark = pytest.mark.vm

PROGRAM = ROOT / "build" / "editable" / "tests" / "vm" / "programs" / "carrier"
ENTRIES = 5000
#: 16 MiB in pages of 4 KiB; pages of 2 MiB, which DAX may give, need fewer faults.
PAGES = 4096


def carried(machine: Machine, tier: str, folder: str) -> dict[str, int]:
    reported = machine.run(f"{PROGRAM} {tier} {folder}").ok()
    found = {key: int(value) for key, value in (line.split() for line in reported.splitlines())}
    print(f"{tier}:{folder}: {found}")
    return found


@pytest.mark.parametrize("file_system", ["ext4", "xfs"])
def test_dax_file_systems_are_persistent_memory(machine: Machine, file_system: str) -> None:
    make_fsdax(machine, file_system)
    found = carried(machine, "fsdax", "/mnt/pmem")
    assert (found["map_sync"], found["is_pmem"], found["entries"]) == (1, 1, ENTRIES)
    assert found["faults"] <= PAGES


def test_tmpfs_emulates_without_map_sync(machine: Machine) -> None:
    found = carried(machine, "shm", "/dev/shm")
    assert (found["map_sync"], found["entries"]) == (0, ENTRIES)
    assert found["faults"] == PAGES


def test_a_memmap_region_is_taken_for_persistent_memory(tmp_path: Path) -> None:
    with Machine(tmp_path, kernel_options="memmap=192M!512M") as machine:
        reported = json.loads(machine.run("ndctl list -N -i").ok())
        disk = next(f"/dev/{n['blockdev']}" for n in reported if n.get("size") == 192 << 20)
        # DAX wants blocks of a page; so small a file system would have smaller ones.
        machine.run(f"mkfs.ext4 -q -F -b 4096 {disk} && mkdir -p /mnt/memmap").ok()
        machine.run(f"mount -o dax=always {disk} /mnt/memmap").ok()
        found = carried(machine, "fsdax", "/mnt/memmap")
    assert (found["map_sync"], found["is_pmem"], found["entries"]) == (1, 1, ENTRIES)
