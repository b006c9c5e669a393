"""Claims of an emulated machine's firmware: the kernel's files of HMAT tables, read in the guest.

Both nodes are equally fast there, so measurements are injected (tests/test_tier_claims.py has the
verdicts); one run measures, to show that it does.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vm.conftest import NEWER_SUITE
from vm.machine import Machine

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("newer_kernel")]

#: The measured machine: node, latency in ns, bandwidth in GB/s.
MEASURED = ((0, 110, 240), (1, 250, 24))
HONEST = {
    (0, "latency"): "110",
    (1, "latency"): "250",
    (0, "bandwidth"): "240G",
    (1, "bandwidth"): "24G",
}
CHECK = """
import json, sys
from nearfar.machine.doctor.claims import examine_claims
from nearfar.machine.root import Root
from nearfar.machine.topology import this_machine
from nearfar.records.matrix import MatrixPoint, MatrixResult
from nearfar.records.figures import Origin, Provenance
origin = Provenance(origin=Origin.MEASURED, statistic="median", samples=6)
points = []
for node, latency, rate in json.loads(sys.argv[1]):
    figures = {"latency_ns": latency, "read_bandwidth_bytes_per_s": rate * 1e9,
               "write_bandwidth_bytes_per_s": rate * 1e9}
    points.append(MatrixPoint(cpu_node=0, memory_node=node, cpus=[0],
                              provenance=dict.fromkeys(figures, origin), **figures))
matrix = MatrixResult(region_bytes=1 << 28, points=points)
found = examine_claims(this_machine(), Root(), matrix)
print(json.dumps([finding.model_dump() for finding in found]))
"""


def tables(changed: dict[tuple[int, str], str]) -> tuple[str, ...]:
    """QEMU's arguments of an HMAT; ``write-latency`` overrides that of all accesses. The kernel
    takes a table of writes as one of all nodes: each needs an entry."""
    return tuple(
        f"hmat-lb,initiator=0,target={node},hierarchy=memory,"
        f"data-type={kind if '-' in kind else f'access-{kind}'},{kind.rpartition('-')[2]}={value}"
        for (node, kind), value in {**HONEST, **changed}.items()
    )


def wrong(folder: Path, changed: dict[tuple[int, str], str]) -> set[str]:
    """Names of the wrong claims about the nodes' figures and tiers."""
    with Machine(folder, kernel_suite=NEWER_SUITE, hmat=tables(changed)) as machine:
        (machine.share / "check.py").write_text(CHECK)
        given = json.dumps(MEASURED)
        printed = machine.run(f".venv/bin/python /mnt/share/check.py '{given}'").ok()
        found = json.loads(printed)
        print(json.dumps(found, indent=1))
    assert sum(finding["check"].startswith("HMAT ") for finding in found) == 8
    assert any(finding["check"] == "memory tiers of nodes 0 and 1" for finding in found)
    return {
        finding["check"]
        for finding in found
        if finding["level"] == "warning" and not finding["check"].startswith("interleave")
    }


def test_honest_tables_pass(tmp_path: Path) -> None:
    assert wrong(tmp_path, {}) == set()


@pytest.mark.parametrize(
    ("claims", "named"),
    [
        (
            {(1, "latency"): "100"},
            {"HMAT read latency of node 1", "HMAT write latency of node 1"},
        ),
        (
            {(0, "write-latency"): "110", (1, "write-latency"): "100"},
            {"HMAT write latency of node 1"},
        ),
        (
            {(1, "bandwidth"): "240G"},
            {"HMAT read bandwidth of node 1", "HMAT write bandwidth of node 1"},
        ),
        (
            {(1, "bandwidth"): "2G"},
            {"HMAT read bandwidth of node 1", "HMAT write bandwidth of node 1"},
        ),
    ],
)
def test_each_wrong_table_is_named(
    tmp_path: Path, claims: dict[tuple[int, str], str], named: set[str]
) -> None:
    assert wrong(tmp_path, claims) == named


def test_a_memory_that_is_claimed_to_be_near_is_in_one_tier(tmp_path: Path) -> None:
    found = wrong(tmp_path, {(1, "latency"): "110", (1, "bandwidth"): "240G"})
    assert found == {
        "HMAT read latency of node 1",
        "HMAT write latency of node 1",
        "HMAT read bandwidth of node 1",
        "HMAT write bandwidth of node 1",
        "memory tiers of nodes 0 and 1",
    }


def test_the_verb_measures_and_compares(tmp_path: Path) -> None:
    with Machine(tmp_path, kernel_suite=NEWER_SUITE, hmat=tables({})) as machine:
        printed = machine.run("./nearfar doctor --tiers --json -", timeout_s=280).ok()
    found = json.loads(printed)
    ways = [(point["cpu_node"], point["memory_node"]) for point in found["matrix"]["points"]]
    assert ways == [(0, 0), (0, 1)]
    assert {"memory tiers of nodes 0 and 1", "interleave weights of nodes 0 and 1"} <= {
        finding["check"] for finding in found["findings"]
    }
