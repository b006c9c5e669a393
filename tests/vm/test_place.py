"""``nearfar place`` on two memory nodes, with a program that changes its memory and answers."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from changing_memory import PLAN, PROMISE, build
from vm.conftest import print_figure
from vm.machine import Done, Machine

pytestmark = pytest.mark.vm

MIB = 1 << 20
_PLACE = "./nearfar place --pid"
_LIMIT_S = 600


class Guest:
    """A running ``changing_memory`` in the machine; its pipes are in ``folder``."""

    def __init__(self, machine: Machine, pid: str, folder: str) -> None:
        self.machine = machine
        self.pid = pid
        self._folder = folder
        self._rounds = 0

    def send(self, request: str) -> None:
        self.machine.run(f"echo {request} > {self._folder}/in").ok()

    def ask(self, request: str) -> str:
        pipes = f"echo {request} > {self._folder}/in; timeout 100 head -n 1 {self._folder}/out"
        return self.machine.run(pipes).ok().strip()

    def where(self, region: str) -> tuple[int, int]:
        """Pages on node 0 and 1, as the kernel reports them to the program."""
        near, far = self.ask(f"where {region}").split()
        return int(near), int(far)

    def share(self, node: int) -> float:
        """Of the pages of all regions, the fraction on a node."""
        found = self.where("all")
        return found[node] / sum(found)

    def assert_works(self) -> None:
        """It goes on, and everything that it wrote is there."""
        before, self._rounds = self._rounds, int(self.ask("rounds"))
        assert self._rounds > before


def wait_until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + _LIMIT_S
    while not what():
        assert time.monotonic() < end, "it did not happen"


@pytest.fixture
def guest(machine: Machine) -> Iterator[Guest]:
    yield from started(machine, "changing_memory")


def started(machine: Machine, name: str, command: str = "", *flags: str) -> Iterator[Guest]:
    """A program that is running; NUMA balancing is off."""
    build(machine.share, *flags).rename(machine.share / name)
    (machine.share / "far.plan").write_text(PLAN.format(node=1) + PROMISE)
    folder = f"/tmp/{name}.pipes"
    machine.run(
        f"sysctl -q kernel.numa_balancing=0; cp /mnt/share/{name} /tmp; rm -rf {folder}; "
        f"mkdir {folder} && mkfifo {folder}/in {folder}/out"
    ).ok()
    machine.start(f"{command} /tmp/{name} {folder}")
    wait_until(lambda: machine.run(f"pgrep -x {name[:15]}").code == 0)
    pid = machine.run(f"pgrep -x {name[:15]}").ok().split()[-1]
    found = Guest(machine, pid, folder)
    try:
        found.assert_works()
        yield found
    finally:
        machine.run(f"kill -9 {pid}; cat /mnt/share/background >&2")


def place(guest: Guest, *flags: str) -> tuple[Done, dict[str, Any]]:
    machine = guest.machine
    done = machine.run(f"{_PLACE} {guest.pid} --json /tmp/p.json {' '.join(flags)}", _LIMIT_S)
    print(done)
    done.ok()
    return done, json.loads(machine.run("cat /tmp/p.json").ok())


def attach(guest: Guest, flags: str) -> None:
    """Start ``nearfar place`` in the background."""
    command = f"{_PLACE} {guest.pid} --plan /mnt/share/far.plan {flags}"
    guest.machine.run(
        f"(echo $BASHPID > /tmp/attached.pid; exec {command}) >/tmp/attached 2>&1 & disown"
    ).ok()


def refused(found: dict[str, Any]) -> dict[str, int]:
    return {each["reason"]: each["size_bytes"] for each in found["refused"]}


def test_pages_are_placed_while_the_program_runs_and_moved_back(guest: Guest) -> None:
    assert guest.share(0) == 1
    assert guest.ask("pin") == "done"
    _, found = place(guest, "--plan /mnt/share/far.plan --once --rate 64MiB/s")
    assert guest.share(1) >= 0.98
    near, far = guest.where("all")
    print_figure("pages on the far node after place --once", far, near + far)
    guest.assert_works()
    assert found["placed_bytes"] >= 0.98 * found["wanted_bytes"] >= 35 * MIB
    assert found["moved_bytes"] == found["placed_bytes"]
    assert refused(found).get("busy") == 4096  # what the kernel holds

    _, back = place(guest, "--revert")
    assert guest.share(0) == 1
    print_figure("bytes moved back by --revert", back["placed_bytes"], back["wanted_bytes"])
    guest.assert_works()
    assert back["placed_bytes"] == back["wanted_bytes"] >= found["moved_bytes"]
    again = guest.machine.run(f"{_PLACE} {guest.pid} --revert")
    assert again.code == 2
    assert "no record below nearfar-runs of moved pages" in again.stderr


def test_pages_are_interleaved_by_weights_and_moved_back(guest: Guest) -> None:
    """Blocks of 2 MiB: three of four are on node 1, and stay there."""
    plan = "hmalloc-plan 1\ntier mixed numa:0+1,weights=1:3\n"
    plan += "".join(
        line.replace("rule far", "rule mixed") + "\n"
        for line in PLAN.splitlines()
        if line.startswith("rule")
    )
    (guest.machine.share / "mixed.plan").write_text(plan)
    _, found = place(guest, "--plan /mnt/share/mixed.plan --once --rate unlimited")
    assert found["placed_bytes"] >= 0.98 * found["wanted_bytes"] >= 35 * MIB
    near, far = guest.where("anonymous")
    assert far / (near + far) == pytest.approx(0.75, abs=0.09)
    assert found["tiers"] == {"mixed": "numa:0+1,weights=1:3"}
    guest.assert_works()
    _, again = place(guest, "--plan /mnt/share/mixed.plan --once --rate unlimited")
    assert again["moved_bytes"] == 0  # each block stays where it is
    _, back = place(guest, "--revert")
    assert back["moved_bytes"] == found["moved_bytes"]
    assert guest.share(0) == 1
    guest.assert_works()


def test_it_follows_a_program_that_maps_unmaps_and_forks(guest: Guest) -> None:
    machine = guest.machine
    machine.run("rm -f /tmp/attached.json").ok()
    attach(guest, "--rate unlimited --json /tmp/attached.json")
    wait_until(lambda: guest.share(1) >= 0.98)
    assert guest.ask("unmap") == "done"
    assert guest.ask("fork").isdigit()
    guest.assert_works()
    assert guest.ask("join") == "done"
    guest.ask("back heap 0")
    wait_until(lambda: guest.where("heap")[0] == 0)
    guest.ask("back heap 0")
    wait_until(lambda: guest.where("heap")[0] == 0)
    guest.assert_works()
    machine.run("sysctl -q kernel.numa_balancing=1").ok()
    guest.send("exit")
    wait_until(lambda: machine.run("test -s /tmp/attached.json").code == 0)
    text = machine.run("cat /tmp/attached").ok()
    print(text)
    found = json.loads(machine.run("cat /tmp/attached.json").ok())
    assert (found["ended"], found["complete"]) == ("program ended", True)
    assert found["looks"] > 2
    assert found["undone_bytes"] >= 4 * MIB
    print_figure("bytes that were moved back, reported", found["undone_bytes"], 4 * MIB)
    (setting,) = found["moving_settings"]
    assert setting["command"] == "sysctl kernel.numa_balancing=0"
    assert "were moved back: /proc/sys/kernel/numa_balancing is 1" in " ".join(text.split())


def test_new_memory_is_placed_too(guest: Guest) -> None:
    machine = guest.machine
    attach(guest, "--rate unlimited")
    wait_until(lambda: guest.share(1) >= 0.98)
    assert guest.ask("grow") == "done"
    wait_until(lambda: guest.where("anonymous")[0] == 0)
    guest.assert_works()
    machine.run("kill -TERM $(cat /tmp/attached.pid)").ok()
    wait_until(lambda: "Interrupted." in machine.run("cat /tmp/attached").stdout)
    guest.assert_works()


def test_what_was_moved_until_an_interrupt_is_moved_back(guest: Guest) -> None:
    machine = guest.machine
    attach(guest, "--rate 2MiB/s --json /tmp/attached.json")
    wait_until(lambda: guest.where("all")[1] >= 500)
    machine.run("kill -TERM $(cat /tmp/attached.pid)").ok()
    wait_until(lambda: "interrupted" in machine.run("cat /tmp/attached").stdout)
    found = json.loads(machine.run("cat /tmp/attached.json").ok())
    assert (found["ended"], found["complete"]) == ("interrupted", False)
    assert 0 < guest.share(1) < 1
    guest.assert_works()
    _, back = place(guest, "--revert")
    assert back["moved_bytes"] >= 500 * 4096
    assert guest.share(0) == 1


def test_memory_of_a_child_is_moved_on_request(guest: Guest) -> None:
    guest.ask("fork")
    _, found = place(guest, "--plan /mnt/share/far.plan --once --rate unlimited")
    assert refused(found)["shared"] >= 4 * MIB
    assert found["children"] == 1
    _, found = place(guest, "--plan /mnt/share/far.plan --once --rate unlimited --shared")
    assert "shared" not in refused(found)
    assert guest.share(1) >= 0.98
    guest.ask("join")
    guest.assert_works()


@pytest.fixture
def static_guest(machine: Machine) -> Iterator[Guest]:
    command = "./nearfar run --plan /mnt/share/far.plan --check --json /tmp/static.json --"
    yield from started(machine, "static_memory", command, "-static")


def test_a_static_program_is_placed_by_run(static_guest: Guest) -> None:
    machine = static_guest.machine
    wait_until(lambda: static_guest.share(1) >= 0.98)
    static_guest.assert_works()
    static_guest.send("exit")
    wait_until(lambda: machine.run("test -s /tmp/static.json").code == 0)
    found = json.loads(machine.run("cat /tmp/static.json").ok())
    assert found["exit_code"] == 0
    assert found["placement"]["moved_bytes"] >= 35 * MIB
    placed = found["placement"]
    print_figure("bytes of a static program", placed["placed_bytes"], placed["wanted_bytes"])
    assert found["placement"]["ended"] == "program ended"
    check = found["check"]
    assert check["kept"], check
    assert sum(rule["pages"] for rule in check["rules"]) >= 20 * MIB // 4096


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_a_database_is_placed_while_it_answers(machine: Machine) -> None:
    client = "redis-cli -s /tmp/redis.socket"
    machine.run("sysctl -q kernel.numa_balancing=0").ok()
    machine.start(
        "redis-server --port 0 --unixsocket /tmp/redis.socket --save '' "
        "--enable-debug-command yes --pidfile /tmp/redis.pid"
    )
    wait_until(lambda: machine.run(f"{client} ping").stdout == "PONG\n")
    pid = machine.run("pidof redis-server").ok().strip()
    try:
        machine.run(f"{client} debug populate 200000 key 100").ok()
        plan = "hmalloc-plan 1\nrule far map=anonymous size=1MiB..\nrule far map=heap\n"
        (machine.share / "redis.plan").write_text(plan)
        command = f"{_PLACE} {pid} --plan /mnt/share/redis.plan --tier far=numa:1 --once"
        print(machine.run(command, _LIMIT_S).ok())
        assert machine.run(f"{client} dbsize").ok() == "200000\n"
        assert machine.run(f"{client} get key:123456").ok().startswith("value:123456")
        found = pages_by_node(machine.run(f"cat /proc/{pid}/numa_maps").ok())
        print(found)
        assert found[1] >= 0.98 * sum(found)
        print_figure("pages of redis-server", found[1], sum(found))
    finally:
        machine.run(f"kill -9 {pid}")


def pages_by_node(numa_maps: str) -> list[int]:
    """Pages of the heap and of anonymous memory on node 0 and 1, as the kernel has them."""
    lines = [line for line in numa_maps.splitlines() if "file=" not in line and "stack" not in line]
    text = "\n".join(lines)
    return [sum(map(int, re.findall(rf"\bN{node}=([0-9]+)", text))) for node in (0, 1)]
