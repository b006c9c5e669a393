"""Tiers on real DAX devices and on a node without processors: recognised, and used by every verb.

Times in an emulator mean nothing; what counts here is that the work is done and checked.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from vm.conftest import make_fsdax
from vm.machine import Machine

pytestmark = pytest.mark.vm

PMEM = "/mnt/pmem"
DEVICE = "/dev/dax0.0"


@pytest.fixture(scope="module", params=["fsdax", "devdax", "numa"])
def tier(request: pytest.FixtureRequest, machine: Machine) -> str:
    """One far tier after the other, on the machine's one NVDIMM."""
    if request.param == "fsdax":
        make_fsdax(machine)
        return f"fsdax:{PMEM}"
    if request.param == "devdax":
        machine.run(f"umount {PMEM}")
        machine.run("ndctl create-namespace -f -e namespace0.0 -m devdax --map=mem").ok()
        return f"devdax:{DEVICE}"
    return "numa:1"


def topology(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(machine.run("./nearfar topo --json -").ok())
    return found


def test_topo_and_doctor_tell_what_persistence_is_real(machine: Machine, tier: str) -> None:
    entry = next(t for t in topology(machine)["tiers"] if t["spec"] == tier)
    if tier == "numa:1":
        assert (entry["persistence"], entry["dax"]) == ("none", "no")
        return
    assert entry["dax"] == tier.partition(":")[0]
    assert entry["persistence"] == "claimed"  # by an emulator: nobody can prove it from inside
    assert entry["flushes_needed"]
    findings = machine.run("./nearfar doctor").ok()
    assert "persistence as the host claims it" in " ".join(findings.split())


def test_probe_measures_it(machine: Machine, tier: str) -> None:
    done = machine.run(f"./nearfar probe --tier {tier} --quick --time 10 --size 8MiB", 300)
    assert "Latency of a load" in done.ok()
    skipped = [line for line in done.stderr.splitlines() if "the whole section" in line]
    assert [line for line in skipped if not line.endswith("(no time)")] == []


def test_stream_holds_the_right_values(machine: Machine, tier: str) -> None:
    machine.run(f"./nearfar bench stream --tier {tier} --size 4MiB --time 3 --threads 2").ok()


def test_a_mapped_file_has_map_sync_on_fsdax_alone(machine: Machine, tier: str) -> None:
    if not tier.startswith("fsdax"):
        pytest.skip("a mapped file needs a file system")
    told = machine.run(f"./nearfar bench mapped --path {PMEM} --size 4MiB --time 5 --json -").ok()
    mapping = json.loads(told)["mapping"]
    assert (mapping["dax"], mapping["map_sync"]) == (True, True)


def test_maps_and_sets_run_where_pools_can_lie(machine: Machine, tier: str) -> None:
    if not tier.startswith("fsdax"):
        refused = machine.run(f"./nearfar bench map --op get --type map -n 500 --tier {tier}")
        assert refused.code == 2
        assert "cannot hold a pool" in refused.stderr
        return
    few = f"--tier {tier} --runs 5 --quiet"
    machine.run(f"./nearfar bench map --op insert --type map -n 500 -d 8 {few}", 300).ok()
    machine.run(f"./nearfar bench intset --structure hash -n 256 --time 1 {few}", 300).ok()
