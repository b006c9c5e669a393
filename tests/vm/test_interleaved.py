"""Tiers with weights: pages on both nodes in their proportions, by the kernel or in stripes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hmalloc_build import build_id_of, compile_c, return_address
from nearfar.place.promise import PlanPromise, Promise, RulePromise
from vm.conftest import print_figure
from vm.machine import Done, Machine

pytestmark = pytest.mark.vm

MIB = 1 << 20
WEIGHTS = "/sys/kernel/mm/mempolicy/weighted_interleave"
NEAR_SHARE = 5 / 8


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory, newer_kernel: str) -> Iterator[Machine]:
    with Machine(tmp_path_factory.mktemp("newer"), kernel_suite=newer_kernel) as started:
        yield started


def _plan(rules: dict[str, int]) -> str:
    """A plan with a rule for each condition, and a promise of as many MiB."""
    whole = PlanPromise(
        allocated_bytes=64 * MIB, peak_bytes=0, near_bytes=0, slowdown=1.0, slowdown_all_far=1.0
    )
    promised = [
        RulePromise(
            rule=number,
            tier="mixed",
            allocations=1,
            allocated_bytes=size * MIB,
            peak_bytes=size * MIB,
            reads=0,
            writes=0,
            stall_share=0.0,
            at=at.split()[0],
        )
        for number, (at, size) in enumerate(rules.items(), start=1)
    ]
    tier = "tier mixed numa:0+1,weights=5:3"
    lines = [*Promise(whole=whole, rules=promised).lines(), tier]
    return "\n".join(["hmalloc-plan 1", *lines, *(f"rule mixed {at}" for at in rules)]) + "\n"


def _checked(machine: Machine, plan: str, command: str) -> tuple[Done, dict[str, Any]]:
    (machine.share / "mixed.plan").write_text(plan)
    done = machine.run(
        "./nearfar run --plan /mnt/share/mixed.plan --check --no-traffic --json /tmp/check.json "
        f"-- {command}"
    )
    print(done)
    return done, json.loads(machine.run("cat /tmp/check.json").ok())["check"]


def _run(machine: Machine) -> tuple[dict[str, list[int]], dict[str, Any]]:
    flags = ["-fno-omit-frame-pointer", "-Wl,--build-id"]
    program = compile_c(machine.share, "interleaved_memory", flags=flags)
    site = f"{build_id_of(program)}+{return_address(program, 'array', 'mmap')}"
    plan = _plan({f"map={site}": 32, "size=1MiB..": 48, "size=1000..1000": 16})
    done, check = _checked(machine, plan, f"/mnt/share/{program.name}")
    lines = (line.split() for line in done.stdout.splitlines())
    return {name: [int(number) for number in rest] for name, *rest in lines}, check


def _kept(found: dict[str, list[int]], check: dict[str, Any]) -> None:
    for name, size in (("mapped", 16), ("grown", 32), ("block", 48)):
        assert sum(found[name]) == size * MIB // 4096, name
        assert found[name][0] == pytest.approx(NEAR_SHARE * sum(found[name]), rel=0.03), name
        print_figure(f"pages of {name} on the first node", found[name][0], sum(found[name]))
    assert check["kept"], check["rules"]
    assert all(rule["pages"] >= 64 for rule in check["rules"])


def test_an_older_kernel_has_stripes(machine: Machine) -> None:
    found, check = _run(machine)
    assert found["kernel"][0] == 0
    _kept(found, check)


def test_the_kernel_interleaves_if_its_weights_are_those(newer: Machine) -> None:
    newer.run(f"echo 5 >{WEIGHTS}/node0 && echo 3 >{WEIGHTS}/node1").ok()
    found, check = _run(newer)
    assert found["kernel"][0] >= 2
    _kept(found, check)


def test_other_weights_of_the_kernel_are_not_used(newer: Machine) -> None:
    newer.run(f"echo 1 >{WEIGHTS}/node0 && echo 1 >{WEIGHTS}/node1").ok()
    found, check = _run(newer)
    assert found["kernel"][0] == 0
    _kept(found, check)


def test_the_answer_of_the_solver_is_realized(machine: Machine) -> None:
    """A stream over two memories of 30 and 10 GB/s belongs to three quarters near."""
    memory = 'kind = "device"\nschema_version = 1\nname = "{0}"\ntitle = "{0}"\n'
    memory += 'description = "for tests"\n[sources]\ns = "for tests"\n'
    figure = '[figures.{0}]\nunit = "{1}"\nvalue = {2}\nsource = "s"\nconfidence = "C"\n'
    for name, latency, rate in (("n", 100, 30e9), ("f", 200, 10e9)):
        figures = figure.format("read_latency_ns", "ns", latency)
        figures += figure.format("read_bandwidth_bytes_per_s", "B/s", rate)
        (machine.share / f"{name}.toml").write_text(memory.format(name) + figures)
    (machine.share / "sites.csv").write_text(
        "site,size_bytes,read_bytes,write_bytes,near_stall_s,rule\n"
        "stream,50331648,8e11,0,0,size=1MiB..\n"
        "small,16777216,0,0,0,size=1000..1000\n"
    )
    machine.run(
        "cd /mnt/share && $OLDPWD/nearfar predict interleave --sites sites.csv --near ./n.toml "
        "--far ./f.toml --compute 1s --plan solved.plan"
    ).ok()
    plan = (machine.share / "solved.plan").read_text()
    assert "tier near3far1 numa:0+1,weights=3:1" in plan
    program = compile_c(machine.share, "interleaved_memory")
    done, check = _checked(machine, plan, f"/mnt/share/{program.name}")
    found = {name: rest for name, *rest in (line.split() for line in done.stdout.splitlines())}
    near, far = (int(number) for number in found["block"])
    assert near + far == 48 * MIB // 4096
    assert near == pytest.approx(0.75 * 12288, rel=0.02)
    assert check["kept"], check["rules"]


def test_pages_that_do_not_have_the_proportions_are_found(newer: Machine) -> None:
    """A mapping that the program binds to one node itself: mbind() with MPOL_BIND."""
    (newer.share / "bound.py").write_text(
        "import ctypes, mmap\n"
        "memory = mmap.mmap(-1, 16 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
        "at = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)))\n"
        "size, node0 = ctypes.c_ulong(16 << 20), ctypes.c_ulong(1)\n"
        "mbind = ctypes.CDLL(None).syscall\n"
        "assert mbind(237, at, size, 2, ctypes.byref(node0), 64, 0) == 0\n"
        "memory[:] = bytes(16 << 20)\n"
    )
    plan = _plan({"map=anonymous size=16MiB..16MiB": 16})
    done, check = _checked(newer, plan, "python3 /mnt/share/bound.py")
    assert done.code == 1
    broken = "100.0% of its pages are on node 0: mixed has 62.5% there"
    assert check["rules"][0]["broken"] == broken
