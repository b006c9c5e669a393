"""``nearfar run --compare`` on two memory nodes: a plan with its prediction, and the kernel."""

from __future__ import annotations

import json

import pytest

from vm.machine import Machine

pytestmark = pytest.mark.vm

_BALANCING = "/proc/sys/kernel/numa_balancing"
_DEMOTION = "/sys/kernel/mm/numa/demotion_enabled"
_PLAN = """hmalloc-plan 1
# promise 1 heap allocated_bytes=1 peak_bytes=1 near_bytes=0 slowdown=1.25 slowdown_all_far=1.5
default far
"""


def test_the_kernel_places_pages_in_its_own_runs_only(machine: Machine) -> None:
    machine.run(f"echo 0 > {_BALANCING}; echo false > {_DEMOTION}; rm -f /tmp/seen").ok()
    notes = f"sh -c 'cat {_BALANCING} {_DEMOTION} | paste -s -d: >> /tmp/seen'"
    (machine.share / "promised.plan").write_text(_PLAN)
    variants = "all-near,all-far,/mnt/share/promised.plan,kernel"
    found = json.loads(
        machine.run(
            f"./nearfar run --compare {variants} --tier far=numa:1 --runs 2 --json - -- {notes}"
        ).ok()
    )
    rows = found["variants"]
    assert [row["variant"] for row in rows] == variants.split(",")
    assert [row.get("predicted_slowdown") for row in rows] == [None, 1.5, 1.25, None]
    assert all(row["slowdown"] for row in rows[1:])
    seen = machine.run("sort /tmp/seen").ok().split()
    assert seen == ["0:false"] * 6 + ["2:true"] * 2
    after = machine.run(f"cat {_BALANCING} {_DEMOTION}").ok().split()
    assert after == ["0", "false"]
