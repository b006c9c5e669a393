"""``nearfar run --plan --check`` on two memory nodes: sites live where the plan says."""

from __future__ import annotations

import json

import pytest

from nearfar.place.promise import HeapPromise, Promise, RulePromise
from vm.machine import Machine

pytestmark = pytest.mark.vm

BLOCKS, BYTES = 200, 100_000
SCRIPT = f"held = [bytes([n]) * {BYTES} for n in range({BLOCKS})]"


def _plan() -> str:
    reported: dict[str, object] = {"allocations": BLOCKS, "reads": 0, "writes": 0, "stall_share": 0}
    large = {**reported, "allocated_bytes": BLOCKS * BYTES, "peak_bytes": BLOCKS * BYTES}
    small = {**reported, "allocated_bytes": 1000, "peak_bytes": 1000}
    heap = HeapPromise(
        allocated_bytes=BLOCKS * BYTES + 1000,
        peak_bytes=BLOCKS * BYTES + 1000,
        near_bytes=1000,
        slowdown=1.0,
        slowdown_all_far=1.0,
    )
    rules = [
        RulePromise.model_validate({**large, "rule": 1, "tier": "far", "at": "blocks"}),
        RulePromise.model_validate({**small, "rule": 2, "tier": "near", "at": "the rest"}),
    ]
    promise = Promise(heap=heap, rules=rules)
    return "\n".join(["hmalloc-plan 1", *promise.lines(), "rule far size=64KiB..", "rule near"])


def _run(machine: Machine, far: str) -> tuple[int, dict[str, object]]:
    machine.run(f"cat > /tmp/p.plan <<'END'\n{_plan()}\nEND").ok()
    done = machine.run(
        f"./nearfar run --plan /tmp/p.plan --tier near=numa:0 --tier far={far} --check "
        f'--json /tmp/check.json -- python3 -c "{SCRIPT}"'
    )
    print(done)
    return done.code, json.loads(machine.run("cat /tmp/check.json").ok())["check"]


def test_sites_live_where_the_plan_says(machine: Machine) -> None:
    code, check = _run(machine, "numa:1")
    assert code == 0
    assert check["kept"]
    blocks = check["rules"][0]  # type: ignore[index]
    assert blocks["allocated_bytes"] >= BLOCKS * BYTES
    assert blocks["pages"] > BLOCKS
    assert blocks["misplaced_pages"] == 0


def test_a_node_that_is_too_small_breaks_the_promise(machine: Machine) -> None:
    code, check = _run(machine, "numa:1,capacity=8MiB,overflow=spill:near")
    assert code == 1
    assert "did not go to far" in check["rules"][0]["broken"]  # type: ignore[index]
