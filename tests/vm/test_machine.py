"""The harness itself: it boots, runs commands, brings results back, and ends."""

from __future__ import annotations

import json
from pathlib import Path

from vm.machine import Machine


def test_it_boots_and_tells_how_long_it_took(machine: Machine) -> None:
    print(f"boot to first command: {machine.boot_s:.1f} s")
    assert 0 < machine.boot_s < machine.boot_limit_s


def test_commands_bring_back_code_and_both_streams(machine: Machine) -> None:
    done = machine.run("echo out; echo err >&2; exit 3")
    assert (done.code, done.stdout, done.stderr) == (3, "out\n", "err\n")


def test_files_cross_by_the_share(machine: Machine) -> None:
    (machine.share / "in").write_text("there\n")
    machine.run("cat /mnt/share/in > /mnt/share/out").ok()
    assert (machine.share / "out").read_text() == "there\n"


def test_nothing_done_there_reaches_this_machine(machine: Machine) -> None:
    machine.run("echo spoilt > README.md").ok()
    assert "spoilt" not in (Path(__file__).parent.parent.parent / "README.md").read_text()


def test_topology_has_a_node_without_processors(machine: Machine) -> None:
    found = json.loads(machine.run("./nearfar topo --json -").ok())
    cpuless = [node for node in found["nodes"] if node["cpuless"]]
    assert [node["id"] for node in cpuless] == [1]
