"""The machine on the page: its picture, and latency between its nodes."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import factories
from nearfar.machine.model import Machine
from nearfar.machine.topology import machine_from
from nearfar.records.figures import Origin
from nearfar.records.matrix import MatrixPoint, MatrixResult
from nearfar.records.run import Sections
from nearfar.report.charts.topology import topology_figure
from nearfar.report.html.page import render
from nearfar.report.html.sections._nodes import NodeMeasurements, latency_matrix

MACHINES = Path(__file__).parent / "fixtures" / "machines"


def _texts(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter() if each.text]


def _machine(name: str) -> Machine:
    return machine_from(MACHINES / name)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (
            "two-sockets",
            ["Package 0: 2 cores, 4 CPUs", "Package 1: 2 cores, 4 CPUs", "L3 27.5 MiB"],
        ),
        ("cxl-expander", ["Node 1: 96 GiB CXL", "without CPUs, distance 14", "far"]),
        ("cxl-expander", ["firmware claims 250 ns, 17.8 GB/s"]),
        ("optane-appdirect", ["region0: 1.5 TiB persistent", "persistence real: /mnt/pmem0"]),
        ("optane-memory-mode", ["behind 96 GiB of near memory as a cache"]),
        ("memmap-pmem", ["Node 0: 12 GiB DRAM", "near"]),
    ],
)
def test_recorded_machines_are_drawn(name: str, shown: list[str]) -> None:
    figure = topology_figure(_machine(name), {})
    for svg in (figure.wide, figure.narrow):
        assert set(shown) <= set(_texts(svg))


@pytest.mark.parametrize("cores", [1, 2, 8, 64, 192])
def test_every_core_is_drawn_inside_its_package(cores: int) -> None:
    machine = _machine("two-sockets")
    one = machine.cpus[0]
    machine.cpus = [one.model_copy(update={"id": i, "core": i}) for i in range(cores)]
    machine.caches = [c for c in machine.caches if c.level == 3][:1]
    machine.caches[0].cpus = list(range(cores))
    for svg in vars(topology_figure(machine, {})).values():
        if not str(svg).startswith("<svg"):
            continue
        root = ElementTree.fromstring(svg)
        boxes = [
            {k: float(v) for k, v in each.attrib.items() if k in ("x", "y", "width", "height")}
            for each in root.iter()
            if each.tag.endswith("rect")
        ]
        assert sum(box["width"] in (11, 20) or box["height"] == 40 for box in boxes) >= cores
        assert all(b["x"] + b["width"] <= float(root.attrib["width"]) + 0.5 for b in boxes)
        assert all(b["y"] + b["height"] <= float(root.attrib["height"]) + 1 for b in boxes)


def test_last_caches_of_a_package_group_its_cores() -> None:
    machine = _machine("two-sockets")
    machine.cpus = [cpu.model_copy(update={"package": 0}) for cpu in machine.cpus]
    assert _texts(topology_figure(machine, {}).wide).count("L3 27.5 MiB") == 2


def test_names_in_a_picture_stay_text() -> None:
    machine = _machine("cxl-expander")
    machine.nodes[1].subtype = "<script>"
    assert "<script>" not in topology_figure(machine, {}).wide


def test_matrix_has_measured_latency_before_claims_before_distances() -> None:
    machine = _machine("cxl-expander")
    (claimed,) = latency_matrix(machine, NodeMeasurements())
    assert [cell.text for cell in claimed.rows[0]] == ["CPUs of node 0", "111 ns", "250 ns"]
    assert {cell.origin for cell in claimed.rows[0][1:]} == {Origin.CLAIMED}
    curves = factories.latency(("dram", "numa:1"))
    (measured,) = latency_matrix(machine, NodeMeasurements(curves=curves))
    assert [cell.text for cell in measured.rows[0][1:]] == ["91.5 ns", "102 ns"]
    way = MatrixPoint(
        cpu_node=0,
        memory_node=1,
        cpus=[0],
        latency_ns=271.0,
        read_bandwidth_bytes_per_s=1e9,
        write_bandwidth_bytes_per_s=1e9,
    )
    ways = MatrixResult(region_bytes=1 << 28, points=[way])
    (both,) = latency_matrix(machine, NodeMeasurements(ways, curves))
    assert [cell.text for cell in both.rows[0][1:]] == ["91.5 ns", "271 ns"]
    (plain,) = latency_matrix(_machine("two-sockets"), NodeMeasurements())
    assert [cell.detail for cell in plain.rows[1][1:]] == ["distance 21", "distance 10"]


def test_a_machine_of_one_node_has_no_matrix() -> None:
    assert latency_matrix(_machine("memmap-pmem"), NodeMeasurements()) == []


def test_the_page_has_picture_and_matrix_without_empty_fields_of_the_record() -> None:
    record = _machine("cxl-expander").model_dump(mode="json", exclude_none=True)
    sections = Sections(latency=factories.latency(("dram", "numa:1")))
    page = render(factories.study(machine=record, sections=sections))
    assert "Node 1: 96 GiB CXL" in page
    assert re.search(r"Latency between nodes", page)
    assert re.search(r">\s*CPUs\s*<", page)


def test_dashes_are_explained_only_where_there_are_some() -> None:
    assert "Dashed" in topology_figure(_machine("cxl-expander"), {}).caption
    assert "Dashed" not in topology_figure(_machine("two-sockets"), {}).caption
