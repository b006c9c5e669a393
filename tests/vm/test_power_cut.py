"""The power goes at random moments, twenty times; nothing acknowledged is lost.

One boot serves two cuts: it checks what the last one left, then runs the load until the next. Every
fourth cut comes early. Then more cuts, each before a fence chosen at random within the creation of
the pool, the growth of a structure, and the recovery from that.
"""

from __future__ import annotations

import time
from collections import Counter
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
    Reported,
    complaints,
    lose_pending,
    read_contents,
)

pytestmark = pytest.mark.vm

CUTS = 20
ROUNDS = 3  # of a cut into growth, one into the recovery from it, one into a pool's creation
STOP_LIMIT_S = 300.0  # far from enough only where the guest stands still
POOL = "/mnt/pmem/pool"
PROGRAM = ROOT / "build" / "editable" / "tests" / "vm" / "programs" / "power_cut"


@dataclass
class Campaign:
    """Cuts one after another on one NVDIMM."""

    folder: Path
    without: str = "nothing"
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    start: int = 0  # of the disk in the NVDIMM's file
    before: bytes = b""
    contents: Contents = field(default_factory=lambda: [{} for _ in STRUCTURES])
    reported: Reported = field(default_factory=Reported)
    acknowledged: int = 0
    in_pool: int = 0  # of them in the pool that is there now
    lost: int = 0
    cuts: Counter[str] = field(default_factory=Counter)  # by the phase they were aimed at

    def cycle(self, number: int, aim: str = "", fence: int = 0) -> list[str]:
        """Boot, check what the last cut left, run, cut. Returns complaints about the last cut.

        ``aim``: the phase in which the cut shall come, before its fence number ``fence``. Recovery
        is cut in the first opening after the last cut, so nothing is checked before.
        """
        with Machine(self.folder) as machine:
            if number == 0:
                make_fsdax(machine)
                self.start = disk_start(machine)
            else:
                mount(machine)
                found = [] if aim == "recovery" else self._check(machine)
                if found:
                    return found
            if aim == "creation":
                self._remove_pool(machine)
            (machine.share / "log").unlink(missing_ok=True)
            where = f"{aim} {fence}" if aim else ""
            machine.start(f"{PROGRAM} run {POOL} /mnt/share/log {number} {self.without} {where}")
            if aim:
                self._wait_for_stop(machine, aim)
            else:
                early = number % 4 == 0
                time.sleep(self.random.uniform(0.05, 0.5) if early else self.random.uniform(1, 3))
            ended = machine.run("cat /mnt/share/background").stdout
            assert ended == "", f"the load ended by itself: {ended}"
        self._cut(again=aim == "recovery")
        self.cuts[aim] += 1
        return []

    def last(self) -> list[str]:
        """Boot once more, and check."""
        with Machine(self.folder) as machine:
            mount(machine)
            return self._check(machine)

    def fences(self) -> dict[str, int]:
        """Number of fences of each phase of a pool that is made, worked on, opened and removed."""
        with Machine(self.folder) as machine:
            make_fsdax(machine)
            self.start = disk_start(machine)
            reported = machine.run(f"{PROGRAM} fences {POOL}").ok()
            machine.run(f"rm {POOL} && sync").ok()
        return {
            name: int(count) for name, count in (line.split() for line in reported.splitlines())
        }

    def _wait_for_stop(self, machine: Machine, aim: str) -> None:
        deadline = time.monotonic() + STOP_LIMIT_S
        reported = Reported()
        while reported.read_on(machine.share / "log").stopped != aim:
            assert time.monotonic() < deadline, f"no such fence in {aim}"
            time.sleep(0.1)

    def _remove_pool(self, machine: Machine) -> None:
        machine.run(f"rm -f {POOL} && sync").ok()
        self.before = b""
        self.contents = [{} for _ in STRUCTURES]
        self.reported = Reported()
        self.in_pool = 0

    def _check(self, machine: Machine) -> list[str]:
        if not self.before:
            self._remove_pool(machine)  # cut before a fence of it: the file is not a pool yet
            return []
        done = machine.run(f"{PROGRAM} check {POOL}")
        if done.code != 0 and self.in_pool + self.reported.acknowledged == 0:
            assert POOL in done.stderr, done  # its creation was cut, and it says so
            self._remove_pool(machine)
            return []
        if done.code != 0:
            return [f"the pool does not open: {done.stderr}"]
        after = read_contents(done.stdout)
        found = complaints(self.contents, self.reported, after)
        self.contents = after
        self.acknowledged += self.reported.acknowledged
        self.in_pool += self.reported.acknowledged
        machine.run("sync").ok()
        self.before = bytes(Disk(machine.nvdimm, self.start, self.reported.extents).read())
        return found

    def _cut(self, again: bool) -> None:
        """The contents after the cut. ``again``: nothing was checked since the last one."""
        reported = Reported().read_on(self.folder / "share" / "log")
        if not reported.extents:
            reported.extents = self.reported.extents
        if again:
            assert not reported.operations
            assert not reported.unfinished
            reported.operations, reported.unfinished = (
                self.reported.operations,
                self.reported.unfinished,
            )
        self.reported = reported
        disk = Disk(self.folder / "nvdimm", self.start, reported.extents)
        pending, lost = lose_pending(disk, self.before, reported, self.random)
        self.lost += lost
        if reported.extents:
            self.before = bytes(disk.read())
        where = f" in {reported.stopped}" if reported.stopped else ""
        done = f"{reported.acknowledged} acknowledged"
        print(f"cut{where}: {done}, {pending} lines pending, {lost} lost")


def disk_start(machine: Machine) -> int:
    """Where /dev/pmem0 begins in the NVDIMM's file: looked for, by a pattern written to it."""
    pattern = np.random.default_rng(2).bytes(4096)
    (machine.share / "pattern").write_bytes(pattern)
    machine.run("cp /mnt/share/pattern /mnt/pmem/pattern && sync").ok()
    reported = machine.run(
        "filefrag -b4096 -e /mnt/pmem/pattern | awk '$1 == \"0:\" { print $4 }'"
    ).ok()
    found = machine.nvdimm.read_bytes().find(pattern)
    assert found >= 0
    return found - int(reported.strip().rstrip(".")) * 4096


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


def test_cuts_into_creation_growth_and_recovery_are_survived(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path)
    fences = campaign.fences()
    print(f"fences of a whole phase: {fences}")
    number = 1
    for turn in range(ROUNDS):
        for aim in ("growth", "recovery", "creation"):
            # Most growth comes first: later turns want some that has data to lose.
            least = fences["first_growth"] if aim == "growth" and turn > 0 else 0
            fence = int(campaign.random.integers(least, fences[aim])) + 1
            print(f"before fence {fence} of {aim}: ", end="")
            assert campaign.cycle(number, aim, fence) == []
            number += 1
    assert campaign.last() == []
    print(f"{dict(campaign.cuts)}, {campaign.acknowledged} operations, {campaign.lost} lines lost")
    assert campaign.cuts == dict.fromkeys(("growth", "recovery", "creation"), ROUNDS)
    assert campaign.lost > 0


@pytest.mark.parametrize("without", ["flushes", "fence"])
def test_a_removed_flush_is_noticed_within_twenty_cuts(tmp_path: Path, without: str) -> None:
    campaign = Campaign(tmp_path, without)
    for number in range(1, CUTS + 1):
        found = campaign.cycle(number if campaign.start else 0)
        if found:
            print(f"noticed after {number} boots: {found[0]}")
            return
    assert campaign.last() != []
