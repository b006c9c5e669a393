"""The variant ``kernel`` of ``nearfar run --compare`` on two memory nodes."""

from __future__ import annotations

import pytest

from vm.machine import Machine

pytestmark = pytest.mark.vm

_BALANCING = "/proc/sys/kernel/numa_balancing"
_DEMOTION = "/sys/kernel/mm/numa/demotion_enabled"


def test_the_kernel_places_pages_in_its_own_runs_only(machine: Machine) -> None:
    machine.run(f"echo 0 > {_BALANCING}; echo false > {_DEMOTION}; rm -f /tmp/seen").ok()
    notes = f"sh -c 'cat {_BALANCING} {_DEMOTION} | paste -s -d: >> /tmp/seen'"
    text = machine.run(
        f"./nearfar run --compare all-near,all-far,kernel --tier far=numa:1 --runs 2 -- {notes}"
    ).ok()
    assert "kernel" in text
    seen = machine.run("sort /tmp/seen").ok().split()
    assert seen == ["0:false"] * 4 + ["2:true"] * 2
    after = machine.run(f"cat {_BALANCING} {_DEMOTION}").ok().split()
    assert after == ["0", "false"]
