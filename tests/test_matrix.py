"""``nearfar probe --matrix``, and the section of memory nodes in a study."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import RunNearfar
from factories.shaped import around, origin, shaped
from nearfar.errors import MachineError
from nearfar.machine.topology import machine_from, this_machine
from nearfar.measure import matrix
from nearfar.measure.progress import Progress
from nearfar.measure.session import Session
from nearfar.measure.study import Study
from nearfar.measure.study_plan import STUDY, StudyPlan, study_shares
from nearfar.noise import NoiseMeter
from nearfar.records.matrix import MatrixPoint, MatrixResult
from nearfar.records.run import Run, Sections
from nearfar.report.html.section import Context
from nearfar.report.html.sections.matrix import finding, section
from nearfar.units import MIB

MACHINES = Path(__file__).parent / "fixtures" / "machines"


def point(cpu_node: int, memory_node: int, latency: float, rate: float) -> MatrixPoint:
    figures = {
        "latency_ns": around(latency, 0.02),
        "read_bandwidth_bytes_per_s": around(rate * 1e9, 0.02),
        "write_bandwidth_bytes_per_s": around(rate * 0.8e9, 0.02),
    }
    return MatrixPoint(
        cpu_node=cpu_node,
        memory_node=memory_node,
        cpus=[0, 1],
        **shaped(figures, origin("dram")),
    )


TWO = MatrixResult(
    region_bytes=256 * MIB,
    points=[
        point(0, 0, 90, 200),
        point(0, 1, 150, 110),
        point(1, 0, 151, 111),
        point(1, 1, 91, 199),
    ],
)


def run_of(verb: str, nodes: int, result: MatrixResult | None) -> Run:
    return Run(
        nearfar_version="1",
        verb=verb,
        arguments={},
        started="2025-01-01T00:00:00+00:00",
        seed=1,
        machine={"nodes": [{"id": node} for node in range(nodes)]},
        sections=Sections(matrix=result),
    )


def test_the_matrix_of_this_machine_is_measured(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    done = run_nearfar("probe", "--matrix", "--time", "3", "--out", "m", "--json", "-")
    assert done.code == 0, done.stderr
    points = json.loads(done.stdout)["points"]
    assert points
    for each in points:
        assert each["latency_ns"] > 0
        assert each["provenance"]["read_bandwidth_bytes_per_s"]["origin"] == "measured"
    shown = run_nearfar("show", "m")
    assert "Memory nodes" in shown.stdout


@pytest.mark.parametrize("flag", [("--tier", "dram"), ("--quick",), ("--size", "1GiB")])
def test_flags_of_one_tier_are_refused(run_nearfar: RunNearfar, flag: tuple[str, ...]) -> None:
    done = run_nearfar("probe", "--matrix", *flag)
    assert done.code == 2
    assert f"{flag[0]} does not go with --matrix" in done.stderr


def test_each_node_with_cpus_is_paired_with_each_memory() -> None:
    sockets = machine_from(MACHINES / "two-sockets")
    plan = matrix.plan_of(sockets, [cpu.id for cpu in sockets.cpus], 64 * MIB, 32 * MIB)
    assert [(way.cpu_node, way.memory_node) for way in plan.grid if way.what == "load"] == [
        (0, 0), (0, 1), (1, 0), (1, 1)
    ]  # fmt: skip
    expander = machine_from(MACHINES / "cxl-expander")
    cpus = [cpu.id for cpu in expander.cpus]
    plan = matrix.plan_of(expander, cpus, 64 * MIB, 32 * MIB)
    assert [node for node, _ in plan.cpus] == [0]
    assert plan.memories == (0, 1)
    with pytest.raises(MachineError, match="no CPU of any memory node"):
        matrix.plan_of(expander, [999], 64 * MIB, 32 * MIB)


def test_a_study_of_several_nodes_has_the_section() -> None:
    several = study_shares(machine_from(MACHINES / "two-sockets"))
    assert list(several)[:2] == ["latency", "matrix"]
    assert sum(several.values()) == pytest.approx(sum(STUDY.values()), abs=0.01)
    assert study_shares(machine_from(MACHINES / "memmap-pmem")) == STUDY


def test_the_report_shows_all_ways() -> None:
    shown = section(Context(run_of("study", 2, TWO)))
    assert shown is not None
    assert len(shown.tables[0].rows) == 4
    assert "from node 0 to the memory of node 0" in finding(TWO)
    assert "from node 1 to that of node 0" in finding(TWO)


@pytest.mark.parametrize("nodes", [1, 2])
def test_without_a_matrix_there_is_no_section(nodes: int) -> None:
    assert section(Context(run_of("study", nodes, None))) is None


def test_the_section_of_a_study_is_measured_by_its_plan() -> None:
    saved: list[Sections] = []
    here = this_machine()
    plan = StudyPlan(["dram"], {"matrix": 1.0}, 2.0, here.cores_first(), 64 * MIB, runs=3)
    session = Session("test", 1, silent_progress(), NoiseMeter())
    Study(session, here, plan, lambda sections, _skipped: saved.append(sections)).run()
    result = saved[-1].matrix
    assert result is not None
    assert {way.memory_node for way in result.points} == set(matrix.memory_nodes(here))


def silent_progress() -> Progress:
    class Silent:
        def step(self, what: str, done: float) -> None:
            pass

        def note(self, text: str) -> None:
            pass

    return Silent()
