"""libhmalloc on two memory nodes, one of them without processors: pages lie where they should."""

from __future__ import annotations

import pytest

from vm.machine import ROOT, Machine

pytestmark = pytest.mark.vm

PROGRAM = ROOT / "build" / "test" / "tests" / "vm" / "programs" / "hm_nodes"
MIB = 1 << 20
PAGE = 4096


def placed(machine: Machine, settings: str) -> dict[str, list[str]]:
    told = machine.run(f"{settings} {PROGRAM} {8 * MIB}").ok()
    print(told)
    return {name: values for name, *values in (line.split() for line in told.splitlines())}


def test_near_and_far_lie_on_their_nodes(machine: Machine) -> None:
    found = placed(machine, "HMALLOC_NEAR=numa:0 HMALLOC_FAR=numa:1")
    assert found["near"] == [str(8 * MIB // PAGE), "0"]
    assert found["far"] == ["0", str(8 * MIB // PAGE)]
    assert found["variable"] == ["0", str(MIB // PAGE)]
    assert found["more"] == ["far"]


def test_far_is_the_node_without_processors_by_itself(machine: Machine) -> None:
    assert placed(machine, "")["far"] == ["0", str(8 * MIB // PAGE)]


def test_a_full_far_tier_fails_or_spills_as_told(machine: Machine) -> None:
    few = "HMALLOC_FAR=numa:1,capacity=32MiB"
    assert placed(machine, few)["more"] == ["ENOMEM"]
    assert placed(machine, f"{few},overflow=spill:near")["more"] == ["spilled"]


def test_a_whole_program_runs_on_the_far_node(machine: Machine) -> None:
    script = (
        "held = [bytes([n]) * 100_000 for n in range(200)]; "
        "lines = list(open('/proc/self/numa_maps')); "
        "print([line for line in lines if 'N1=' in line and 'N0=' not in line])"
    )
    told = machine.run(f'./nearfar run --tier far=numa:1 -- python3 -c "{script}"').ok()
    on_far = sum(int(word[3:]) for word in told.replace("\\n", " ").split() if word[:3] == "N1=")
    assert on_far * PAGE >= 20_000_000
