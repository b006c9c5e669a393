"""``nearfar run --plan --check`` on two memory nodes: sites live where the plan says."""

from __future__ import annotations

import json

import pytest

from placed_blocks import BLOCKS, BYTES, SCRIPT, plan
from vm.machine import Machine

pytestmark = pytest.mark.vm


def _run(machine: Machine, far: str) -> tuple[int, dict[str, object]]:
    machine.run(f"cat > /tmp/p.plan <<'END'\n{plan()}\nEND").ok()
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
