"""The power goes at random moments, twenty times; nothing acknowledged is lost.

One boot serves two cuts: it checks what the last one left, then runs the load until the next. Every
fourth cut comes early, into the creation of the pool or its recovery.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from vm.conftest import make_fsdax, mount
from vm.machine import ROOT, Machine
from vm.power_cut import (
    STRUCTURES,
    Contents,
    Disk,
    Told,
    complaints,
    lose_pending,
    read_contents,
    read_log,
)

pytestmark = pytest.mark.vm

CUTS = 20
POOL = "/mnt/pmem/pool"
PROGRAM = ROOT / "build" / "test" / "tests" / "vm" / "programs" / "power_cut"


@dataclass
class Campaign:
    """Cuts one after another on one NVDIMM."""

    folder: Path
    without: str = "nothing"
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    start: int = 0  # of the disk in the NVDIMM's file
    before: bytes = b""
    contents: Contents = field(default_factory=lambda: [{} for _ in STRUCTURES])
    told: Told = field(default_factory=Told)
    acknowledged: int = 0
    lost: int = 0

    def cycle(self, number: int) -> list[str]:
        """Boot, check what the last cut left, run, cut. Returns complaints about the last cut."""
        with Machine(self.folder) as machine:
            if number == 0:
                make_fsdax(machine)
                self.start = disk_start(machine)
            else:
                mount(machine)
                found = self._check(machine)
                if found:
                    return found
            (machine.share / "log").unlink(missing_ok=True)
            early = number % 4 == 0
            machine.start(f"{PROGRAM} run {POOL} /mnt/share/log {number} {self.without}")
            time.sleep(self.random.uniform(0.05, 0.5) if early else self.random.uniform(1, 3))
            ended = machine.run("cat /mnt/share/background").stdout
            assert ended == "", f"the load ended by itself: {ended}"
        self._cut()
        return []

    def last(self) -> list[str]:
        """Boot once more, and check."""
        with Machine(self.folder) as machine:
            mount(machine)
            return self._check(machine)

    def _check(self, machine: Machine) -> list[str]:
        if not self.before:
            return []  # cut before there was a pool: nothing was acknowledged
        done = machine.run(f"{PROGRAM} check {POOL}")
        if done.code != 0 and self.acknowledged + self.told.acknowledged == 0:
            machine.run(f"rm -f {POOL}").ok()  # its creation was cut, and it says so
            self.before = b""
            return []
        if done.code != 0:
            return [f"the pool does not open: {done.stderr}"]
        after = read_contents(done.stdout)
        found = complaints(self.contents, self.told, after)
        self.contents = after
        self.acknowledged += self.told.acknowledged
        machine.run("sync").ok()
        self.before = bytes(Disk(machine.nvdimm, self.start, self.told.extents).read())
        return found

    def _cut(self) -> None:
        log = self.folder / "share" / "log"
        told = read_log(log.read_bytes() if log.exists() else b"")
        if not told.extents:
            told.extents = self.told.extents
        self.told = told
        disk = Disk(self.folder / "nvdimm", self.start, told.extents)
        pending, lost = lose_pending(disk, self.before, told, self.random)
        self.lost += lost
        if told.extents:
            self.before = bytes(disk.read())
        print(f"{told.acknowledged} acknowledged, {pending} lines pending, {lost} of them lost")


def disk_start(machine: Machine) -> int:
    """Where /dev/pmem0 begins in the NVDIMM's file: looked for, by a pattern written to it."""
    pattern = np.random.default_rng(2).bytes(4096)
    (machine.share / "pattern").write_bytes(pattern)
    machine.run("cp /mnt/share/pattern /mnt/pmem/pattern && sync").ok()
    told = machine.run(
        "filefrag -b4096 -e /mnt/pmem/pattern | awk '$1 == \"0:\" { print $4 }'"
    ).ok()
    found = machine.nvdimm.read_bytes().find(pattern)
    assert found >= 0
    return found - int(told.strip().rstrip(".")) * 4096


def test_nothing_acknowledged_is_lost_in_twenty_cuts(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path)
    for number in range(CUTS):
        assert campaign.cycle(number) == []
    assert campaign.last() == []
    print(
        f"{CUTS} cuts, {campaign.acknowledged} operations acknowledged, {campaign.lost} lines lost"
    )
    assert campaign.acknowledged > 0
    assert campaign.lost > 0


@pytest.mark.parametrize("without", ["flushes", "fence"])
def test_what_is_taken_out_is_noticed_within_twenty_cuts(tmp_path: Path, without: str) -> None:
    campaign = Campaign(tmp_path, without)
    for number in range(1, CUTS + 1):
        found = campaign.cycle(number if campaign.start else 0)
        if found:
            print(f"noticed after {number} boots: {found[0]}")
            return
    assert campaign.last() != []
