"""Tiers on real DAX devices and on a node without processors: recognised, and used by every verb.

Times in an emulator mean nothing; what counts here is that the work is done and checked.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from vm.conftest import DEVICE, make_devdax, make_fsdax
from vm.machine import Machine

pytestmark = pytest.mark.vm

PMEM = "/mnt/pmem"


@pytest.fixture(scope="module", params=["fsdax", "devdax", "numa"])
def tier(request: pytest.FixtureRequest, machine: Machine) -> str:
    """One far tier after the other, on the machine's one NVDIMM."""
    if request.param == "fsdax":
        make_fsdax(machine)
        return f"fsdax:{PMEM}"
    if request.param == "devdax":
        make_devdax(machine)
        return f"devdax:{DEVICE}"
    return "numa:1"


def topology(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(machine.run("./nearfar topo --json -").ok())
    return found


def test_topo_and_doctor_report_real_persistence(machine: Machine, tier: str) -> None:
    entry = next(t for t in topology(machine)["tiers"] if t["spec"] == tier)
    if tier == "numa:1":
        assert (entry["persistence"], entry["dax"]) == ("none", "no")
        return
    assert entry["dax"] == tier.partition(":")[0]
    assert entry["persistence"] == "claimed"  # by an emulator: it cannot be proven from inside
    assert entry["flushes_needed"]
    findings = machine.run("./nearfar doctor").ok()
    assert "persistence as the host claims it" in " ".join(findings.split())


def test_probe_measures_it(machine: Machine, tier: str) -> None:
    done = machine.run(f"./nearfar probe --tier {tier} --quick --time 10 --size 8MiB", 300)
    assert "Latency of a load" in done.ok()
    skipped = [line for line in done.stderr.splitlines() if "the whole section" in line]
    assert [line for line in skipped if "(no time: " not in line] == []


def test_stream_holds_the_right_values(machine: Machine, tier: str) -> None:
    machine.run(f"./nearfar bench stream --tier {tier} --size 4MiB --time 3 --threads 2").ok()


def test_a_mapped_file_has_map_sync_on_fsdax_alone(machine: Machine, tier: str) -> None:
    few = "--size 4MiB --time 5 --json -"
    if tier.startswith("devdax"):
        refused = machine.run(f"./nearfar bench mapped --path {DEVICE} {few}")
        assert (refused.code, "device without files" in refused.stderr) == (2, True), refused
        return
    path = PMEM if tier.startswith("fsdax") else files_of_node(machine)
    mapping = json.loads(machine.run(f"./nearfar bench mapped --path {path} {few}").ok())["mapping"]
    assert (mapping["dax"], mapping["map_sync"]) == (tier != "numa:1", tier != "numa:1")


def files_of_node(machine: Machine) -> str:
    """A file system of node 1's memory, as a file in it shows."""
    folder = "/mnt/node1"
    machine.run(f"mkdir -p {folder} && mount -t tmpfs -o mpol=bind:1 none {folder}").ok()
    script = (
        f"import mmap; f = open('{folder}/file', 'w+b'); f.truncate(1 << 20); "
        "m = mmap.mmap(f.fileno(), 0); m[:] = bytes(1 << 20); "
        f"print(*(line for line in open('/proc/self/numa_maps') if '{folder}' in line))"
    )
    held = machine.run(f'python3 -c "{script}"').ok()
    assert (pages_on(held, 0), pages_on(held, 1)) == (0, 256)
    return folder


def test_maps_and_sets_run_in_its_pools(machine: Machine, tier: str) -> None:
    # DRAM emulates persistent memory on a node without any; a device is what it claims to be.
    origin = "emulated" if tier == "numa:1" else "measured"
    few = f"--tier {tier} --quiet --json -"
    fences = {}
    for kind in ("map", "map_rp"):
        command = f"./nearfar bench map --op insert --type {kind} -n 300 -d 8 --runs 1 {few}"
        reported = json.loads(machine.run(command).ok())
        assert reported["provenance"]["latency_ns"]["origin"] == origin
        fences[kind] = reported["fences_per_op"]
    assert 0.9 < fences["map"] < 2 < fences["map_rp"]
    command = f"./nearfar bench intset --structure hash -n 256 --time 1 --runs 1 {few}"
    series = {one["medium"]: one for one in json.loads(machine.run(command).ok())["series"]}
    assert set(series) == {"pmem", "unflushed", "dram", "pmdk"}
    assert series["pmem"]["fences_per_op"] > 0.1
    assert series["dram"]["fences_per_op"] == 0
    for medium, one in series.items():
        its = "measured" if medium == "dram" else origin
        assert one["provenance"]["ops_per_s"]["origin"] == its, medium


def test_arrays_are_objects_of_its_pools(machine: Machine, tier: str) -> None:
    few = "--size 1MiB --threads 1 --time 1 --runs 1"
    machine.run(f"./nearfar bench stream --accessor pmemobj --tier {tier} {few}").ok()


def test_a_pool_and_its_counterpart_are_on_their_node(machine: Machine) -> None:
    for kind, mapped in (("map", "memfd:nearfar"), ("dram", "bind:1")):
        script = (
            "from nearfar import _native; "
            f"b = _native.MapBench('{kind}', 'insert', 50000, 8, False, 'numa:1', [0], 1); "
            "b.run('whole'); print(open('/proc/self/numa_maps').read())"
        )
        maps = machine.run(f'.venv/bin/python -c "{script}"').ok().splitlines()
        held = [line for line in maps if mapped in line and " N" in line]
        on = {n: sum(pages_on(line, n) for line in held) for n in (0, 1)}
        print(f"{kind} on numa:1: {on[0]} pages on node 0, {on[1]} on node 1")
        assert on[0] == 0
        assert on[1] > 500


def pages_on(line: str, node: int) -> int:
    return sum(int(word[3:]) for word in line.split() if word.startswith(f"N{node}="))


def test_more_than_a_node_holds_is_refused(machine: Machine) -> None:
    command = "./nearfar bench map --tier numa:1 --runs 1 -n"
    for extra in ("100000000", "100000000 --type dram"):
        refused = machine.run(f"{command} {extra}")
        assert (refused.code, "fit" in refused.stderr) == (3, True), refused
    absent = machine.run("./nearfar bench map --tier numa:7 --runs 1 -n 500")
    assert (absent.code, "no NUMA node 7" in absent.stderr) == (3, True), absent
    kept = machine.run(f"{command} 500 --keep")
    assert (kept.code, "no files to leave a pool in" in kept.stderr) == (2, True), kept


def test_a_pool_on_a_device_is_not_modified(machine: Machine) -> None:
    make_devdax(machine)
    machine.run(f"pmempool create obj --layout precious {DEVICE}").ok()
    few = "--runs 1 --quiet"
    for command in (
        f"./nearfar bench map -n 500 --tier devdax:{DEVICE} {few}",
        f"./nearfar bench stream --size 4MiB --time 1 --tier devdax:{DEVICE} {few}",
        f"./nearfar run --tier far=devdax:{DEVICE} -- true",
    ):
        refused = machine.run(command)
        assert refused.code != 0, refused
        assert "holds a pool" in refused.stderr, refused
    assert "precious" in machine.run(f"pmempool info {DEVICE}").ok()
    machine.run(f"pmempool rm -f {DEVICE}").ok()
    machine.run(f"./nearfar bench map -n 500 --tier devdax:{DEVICE} {few}").ok()
    assert machine.run(f"pmempool info {DEVICE}").code != 0, "the benchmark's pool was left there"
