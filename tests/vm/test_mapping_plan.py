"""Plans for mappings and globals on two memory nodes: pages are where the plan says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hmalloc_build import build_id_of, compile_c, return_address
from nearfar.place.promise import HeapPromise, Promise, RulePromise
from vm.conftest import print_figure
from vm.machine import Machine

pytestmark = pytest.mark.vm

MIB = 1 << 20
PAGES_PER_MIB = MIB // 4096
NEAR, FAR = 0, 1
#: Memory that tests/programs/placed_memory.c fills, in MiB, and the node of the plan.
EXPECTED = {
    "array": (16, FAR),
    "sized": (12, FAR),
    "populated": (12, FAR),
    "part-0": (4, NEAR),
    "part-4M": (8, FAR),
    "part-12M": (4, NEAR),
    "protected": (4, FAR),
    "committed": (4, FAR),
    "shared": (8, FAR),
    "table": (8, FAR),
    "filled": (2, FAR),
    "near": (5, NEAR),
}


@pytest.fixture(scope="module")
def program(machine: Machine) -> Path:
    flags = ["-fno-omit-frame-pointer", "-Wl,--build-id"]
    return compile_c(machine.share, "placed_memory", flags=flags)


def _plan(program: Path) -> str:
    def site(function: str) -> str:
        return f"{build_id_of(program)}+{return_address(program, function, 'mmap')}"

    rules = [
        (f"rule far map={site('array')}", 1, 16),
        ("rule far map=anonymous size=12MiB..12MiB", 2, 24),
        (f"rule far map={site('ranged')} range=4MiB..12MiB", 1, 8),
        (f"rule far map={site('reserve')}", 2, 68),
        ("rule far map=file:zero", 1, 8),
        ("rule far globals=name:", 1, 10),
    ]
    much = f"rule far map={site('much')}\n"
    return _promising(rules) + much


def _promising(rules: list[tuple[str, int, int]]) -> str:
    """A plan with the promises of rules: text, calls, MiB."""
    heap = HeapPromise(
        allocated_bytes=0, peak_bytes=0, near_bytes=0, slowdown=1.0, slowdown_all_far=1.0
    )
    promised = [
        RulePromise(
            rule=number,
            tier="far",
            allocations=calls,
            allocated_bytes=size * MIB,
            peak_bytes=size * MIB,
            reads=0,
            writes=0,
            stall_share=0.0,
            at=text.split()[2],
        )
        for number, (text, calls, size) in enumerate(rules, start=1)
    ]
    lines = Promise(heap=heap, rules=promised).lines()
    return "\n".join(["hmalloc-plan 1", *lines, *(text for text, _, _ in rules)]) + "\n"


def _run(machine: Machine, command: str) -> tuple[int, str, dict[str, object]]:
    done = machine.run(
        "./nearfar run --plan /mnt/share/mapped.plan --tier near=numa:0 --tier far=numa:1 --check "
        f"--json /tmp/check.json -- {command}"
    )
    print(done)
    found = json.loads(machine.run("cat /tmp/check.json").ok())["check"]
    return done.code, done.stdout, found


def _nodes(output: str) -> dict[str, tuple[int, int]]:
    lines = (line.split() for line in output.splitlines())
    return {name: (int(near), int(far)) for name, near, far in lines}


def test_mapped_memory_and_globals_are_where_the_plan_says(machine: Machine, program: Path) -> None:
    (machine.share / "mapped.plan").write_text(_plan(program))
    code, output, check = _run(machine, f"/mnt/share/{program.name}")
    found = _nodes(output)
    assert set(found) == set(EXPECTED)
    for name, (size, node) in EXPECTED.items():
        pages = size * PAGES_PER_MIB
        assert sum(found[name]) == pages, name
        assert found[name][node] >= 0.98 * pages, (name, found[name])
        print_figure(f"pages of {name}", found[name][node], pages)
    assert (code, check["kept"]) == (0, True)
    rules = check["rules"]
    assert isinstance(rules, list)
    assert [rule["memory"] for rule in rules] == ["mapping"] * 5 + ["globals"]
    assert all(rule["pages"] > 500 and rule["misplaced_pages"] == 0 for rule in rules)


def test_without_the_plan_all_of_it_is_near(machine: Machine, program: Path) -> None:
    output = machine.run(f"/mnt/share/{program.name}").ok()
    assert all(far == 0 for _, far in _nodes(output).values())


def test_a_full_node_ends_no_program_and_is_found(machine: Machine, program: Path) -> None:
    plan = (machine.share / "mapped.plan").read_text()
    last = f"# promise 1 rule=7 tier=far allocations=1 allocated_bytes={1000 * MIB} "
    last += f"peak_bytes={1000 * MIB} reads=0 writes=0 stall_share=0 at=much\n"
    (machine.share / "mapped.plan").write_text(plan + last)
    code, output, check = _run(machine, f"/mnt/share/{program.name} 1000")
    near, far = _nodes(output)["much"]
    assert near + far == 1000 * PAGES_PER_MIB
    assert near > 0.01 * far
    assert code == 1
    rules = check["rules"]
    assert isinstance(rules, list)
    assert "not on far's node" in rules[-1]["broken"]


def test_arenas_of_an_interpreter_are_placed(machine: Machine) -> None:
    """CPython maps its arenas, and unmaps them at the end."""
    plan = _promising([("rule far map=anonymous size=1MiB..1MiB", 30, 30)])
    (machine.share / "mapped.plan").write_text(plan)
    script = "held = [(number, str(number)) for number in range(200_000)]"
    code, _, check = _run(machine, f'python3 -c "{script}"')
    assert (code, check["kept"]) == (0, True)
    rules = check["rules"]
    assert isinstance(rules, list)
    assert rules[0]["peak_bytes"] >= 20 * MIB
    assert rules[0]["pages"] >= 1000
    right = rules[0]["pages"] - rules[0]["misplaced_pages"]
    print_figure("sampled pages of CPython's arenas", right, rules[0]["pages"])
    assert rules[0]["misplaced_pages"] == 0
