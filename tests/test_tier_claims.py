"""``nearfar doctor --tiers``: each wrong claim on memory nodes is named, honest ones pass.

Measurements are injected: in an emulated machine all nodes are equally fast.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from conftest import RunNearfar
from nearfar.machine.doctor.claims import examine_claims
from nearfar.machine.interleave_weights import WEIGHTS, weights_of
from nearfar.machine.model import Machine
from nearfar.machine.root import Root
from nearfar.machine.tier_claims import DEMOTION, TIERING, read_tier_claims
from nearfar.machine.topology import machine_from
from nearfar.records.figures import Origin, Provenance
from nearfar.records.matrix import MatrixPoint, MatrixResult
from nearfar.records.run import Finding
from nearfar.report.terminal.machine import findings

MACHINES = Path(__file__).parent / "fixtures" / "machines"
_MEASURED = Provenance(origin=Origin.MEASURED, statistic="median", samples=6)


def way(cpu_node: int, memory_node: int, latency: float, read: float, write: float) -> MatrixPoint:
    figures = {
        "latency_ns": latency,
        "read_bandwidth_bytes_per_s": read * 1e9,
        "write_bandwidth_bytes_per_s": write * 1e9,
    }
    return MatrixPoint.model_validate(
        {
            "cpu_node": cpu_node,
            "memory_node": memory_node,
            "cpus": [0],
            "provenance": dict.fromkeys(figures, _MEASURED),
            **figures,
        }
    )


#: A CXL expander as the fixture's honest firmware claims it: 111 ns and 267 GB/s of reads near,
#: 250 ns and 17.8 GB/s far.
CXL = MatrixResult(
    region_bytes=1 << 28, points=[way(0, 0, 118, 240, 200), way(0, 1, 262, 16.5, 22.5)]
)
EQUAL = MatrixResult(
    region_bytes=1 << 28, points=[way(0, 0, 111, 240, 200), way(0, 1, 112, 239, 200)]
)


@pytest.fixture
def root(tmp_path: Path) -> Root:
    """The expander with honest tiers and weights."""
    folder = tmp_path / "machine"
    shutil.copytree(MACHINES / "cxl-expander", folder, symlinks=True)
    root = Root(folder)
    write(root, f"{TIERING}/memory_tier4/nodelist", "0")
    write(root, f"{TIERING}/memory_tier22/nodelist", "1")
    write(root, DEMOTION, "true")
    write(root, f"{WEIGHTS}/node0", "15")
    write(root, f"{WEIGHTS}/node1", "1")
    return root


def write(root: Root, name: str, text: str) -> None:
    file = root.path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n")


def claim(root: Root, node: int, figure: str, value: int) -> None:
    write(root, f"sys/devices/system/node/node{node}/access0/initiators/{figure}", str(value))


def judged(root: Root, matrix: MatrixResult) -> list[Finding]:
    return examine_claims(machine_from(root.path), root, matrix)


def wrong(root: Root, matrix: MatrixResult = CXL) -> dict[str, Finding]:
    return {found.check: found for found in judged(root, matrix) if found.level == "warning"}


def correction(finding: Finding) -> str:
    """The command that corrects a claim: the last field."""
    return str(list(finding.model_dump().values())[-1])


def test_honest_claims_pass(root: Root) -> None:
    found = judged(root, CXL)
    assert {finding.level for finding in found} == {"ok"}
    assert [finding.check for finding in found] == [
        "HMAT read latency of node 0",
        "HMAT write latency of node 0",
        "HMAT read bandwidth of node 0",
        "HMAT write bandwidth of node 0",
        "HMAT read latency of node 1",
        "HMAT write latency of node 1",
        "HMAT read bandwidth of node 1",
        "HMAT write bandwidth of node 1",
        "memory tiers of nodes 0 and 1",
        "SLIT distances from node 0 to 0 and 1",
        "interleave weights of nodes 0 and 1",
    ]


@pytest.mark.parametrize(
    ("node", "figure", "value", "check"),
    [
        (1, "read_latency", 111, "HMAT read latency of node 1"),
        (1, "write_latency", 111, "HMAT write latency of node 1"),
        (1, "write_latency", 25, "HMAT write latency of node 1"),
        (0, "write_latency", 1110, "HMAT write latency of node 0"),
        (1, "read_latency", 25, "HMAT read latency of node 1"),
        (1, "read_latency", 2500, "HMAT read latency of node 1"),
        (1, "read_bandwidth", 267000, "HMAT read bandwidth of node 1"),
        (1, "read_bandwidth", 2700, "HMAT read bandwidth of node 1"),
        (1, "write_bandwidth", 237000, "HMAT write bandwidth of node 1"),
        (0, "read_latency", 1110, "HMAT read latency of node 0"),
        (0, "write_bandwidth", 2000, "HMAT write bandwidth of node 0"),
    ],
)
def test_each_wrong_figure_is_named(
    root: Root, node: int, figure: str, value: int, check: str
) -> None:
    claim(root, node, figure, value)
    found = wrong(root)
    assert check in found
    assert "iasl -d HMAT.dat" in correction(found[check])
    assert "claimed" in found[check].found
    # A wrong figure of node 0 makes the same figure of node 1 wrong in proportion to it.
    assert {name.rpartition(" of ")[0] for name in found} == {check.rpartition(" of ")[0]}
    assert node == 0 or set(found) == {check}


def test_two_wrong_figures_are_two_findings(root: Root) -> None:
    claim(root, 1, "read_latency", 111)
    claim(root, 1, "write_bandwidth", 237000)
    assert set(wrong(root)) == {"HMAT read latency of node 1", "HMAT write bandwidth of node 1"}


def test_figures_with_the_same_correction_show_it_once(root: Root) -> None:
    claim(root, 1, "read_latency", 111)
    claim(root, 1, "write_bandwidth", 237000)
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(findings(list(wrong(root).values())))
    shown = console.export_text()
    assert shown.count("iasl -d") == 1
    assert shown.index("HMAT write bandwidth") < shown.index("iasl -d")


def test_one_tier_for_both_memories_is_named_with_the_command(root: Root) -> None:
    shutil.rmtree(root.path / TIERING)
    write(root, f"{TIERING}/memory_tier4/nodelist", "0-1")
    found = wrong(root)
    assert list(found) == ["memory tiers of nodes 0 and 1"]
    tiers = found["memory tiers of nodes 0 and 1"]
    assert "node 1 has 2.2 times the latency and 0.069 times the bandwidth of node 0" in tiers.found
    assert "demotes no cold pages" in tiers.why
    assert "daxctl reconfigure-device" in correction(tiers)


@pytest.mark.parametrize(
    ("tiers", "matrix", "why"),
    [
        ({4: "1", 22: "0"}, CXL, "demotes cold pages to the faster memory"),
        ({4: "0", 22: "1"}, EQUAL, "memory that is not slower"),
    ],
)
def test_tiers_in_the_wrong_order_are_named(
    root: Root, tiers: dict[int, str], matrix: MatrixResult, why: str
) -> None:
    for number, nodes in tiers.items():
        write(root, f"{TIERING}/memory_tier{number}/nodelist", nodes)
    assert why in wrong(root, matrix)["memory tiers of nodes 0 and 1"].why


def test_tiers_without_demotion_are_a_note(root: Root) -> None:
    write(root, DEMOTION, "false")
    noted = [finding for finding in judged(root, CXL) if finding.level == "note"]
    assert [correction(finding) for finding in noted] == [f"echo true | sudo tee /{DEMOTION}"]


def test_wrong_weights_are_named_with_the_right_ones(root: Root) -> None:
    write(root, f"{WEIGHTS}/node0", "1")
    found = wrong(root)
    assert list(found) == ["interleave weights of nodes 0 and 1"]
    fix = correction(found["interleave weights of nodes 0 and 1"])
    assert fix == f"echo 15 | sudo tee /{WEIGHTS}/node0; echo 1 | sudo tee /{WEIGHTS}/node1"
    assert list(wrong(root, EQUAL)) == [
        "HMAT read latency of node 1",
        "HMAT write latency of node 1",
        "HMAT read bandwidth of node 1",
        "HMAT write bandwidth of node 1",
        "memory tiers of nodes 0 and 1",
    ]


def test_distances_in_the_wrong_order_are_named() -> None:
    machine = machine_from(MACHINES / "two-sockets")
    root = Root(MACHINES / "two-sockets")

    def sockets(local: float, remote: float) -> MatrixResult:
        ways = [way(a, b, local if a == b else remote, 100, 80) for a in (0, 1) for b in (0, 1)]
        return MatrixResult(region_bytes=1 << 28, points=ways)

    honest = examine_claims(machine, root, sockets(90, 150))
    assert not [finding for finding in honest if finding.level == "warning"]
    for matrix in (sockets(150, 90), sockets(20, 150)):
        found = examine_claims(machine, root, matrix)
        named = [finding for finding in found if finding.level == "warning"]
        assert [finding.check for finding in named] == [
            "SLIT distances from node 0 to 0 and 1",
            "SLIT distances from node 1 to 0 and 1",
        ]
        assert "iasl -d SLIT.dat" in correction(named[0])


def test_machines_without_claims_have_notes() -> None:
    machine = machine_from(MACHINES / "two-sockets")
    matrix = MatrixResult(region_bytes=1, points=[way(0, 0, 90, 9, 9), way(1, 1, 90, 9, 9)])
    notes = examine_claims(machine, Root(MACHINES / "two-sockets"), matrix)
    assert {finding.level for finding in notes} <= {"note", "ok"}
    assert {"HMAT", "memory tiers", "interleave weights"} <= {finding.check for finding in notes}


def test_damaged_files_claim_nothing(root: Root) -> None:
    write(root, f"{TIERING}/memory_tier4/nodelist", "much")
    write(root, f"{WEIGHTS}/node0", "x")
    claims = read_tier_claims(root)
    assert (claims.tiers, claims.weights, claims.demotion) == ({22: [1]}, {1: 1}, True)


@pytest.mark.parametrize(
    ("rates", "weights"),
    [
        ({0: 240e9, 1: 80e9}, {0: 3, 1: 1}),
        ({0: 200e9, 1: 32e9}, {0: 6, 1: 1}),
        ({0: 60e9, 1: 100e9, 2: 20e9}, {0: 3, 1: 5, 2: 1}),
        ({0: 5e9, 1: 5e9}, {0: 1, 1: 1}),
        ({0: 1e12, 1: 1e9}, {0: 255, 1: 1}),
    ],
)
def test_weights_are_small_numbers(rates: dict[int, float], weights: dict[int, int]) -> None:
    assert weights_of(rates) == weights


def test_a_machine_of_one_node_is_not_measured(
    monkeypatch: pytest.MonkeyPatch, one_node: Callable[[], Machine]
) -> None:
    from nearfar.workflows import tier_claims

    monkeypatch.setattr("nearfar.machine.topology.this_machine", one_node)
    monkeypatch.setattr(tier_claims, "_measured", lambda *_: pytest.fail("measured"))
    checked = tier_claims.check_claims(lambda: pytest.fail("measured"))
    assert checked.matrix is None
    assert "one memory node" in checked.findings[0].found


@pytest.fixture
def one_node() -> Callable[[], Machine]:
    return lambda: machine_from(MACHINES / "memmap-pmem")


def test_a_described_machine_cannot_be_measured(run_nearfar: RunNearfar) -> None:
    done = run_nearfar("doctor", "--tiers", "--from", str(MACHINES / "cxl-expander"))
    assert done.code == 2
    assert "--tiers measures this machine" in done.stderr
