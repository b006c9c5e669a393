"""``make test-hardware`` on a machine with persistent memory and a node without CPUs."""

from __future__ import annotations

import json
import tarfile
from xml.etree import ElementTree

import pytest

from vm.conftest import make_fsdax
from vm.machine import Machine

pytestmark = pytest.mark.vm

RAN = {
    "test_probe_measures_latency[fsdax]",
    "test_probe_measures_latency[numa]",
    "test_stream_holds_the_right_values[fsdax]",
    "test_stream_holds_the_right_values[numa]",
    "test_blocks_are_on_the_far_node",
}


def test_report_of_the_machine(machine: Machine) -> None:
    make_fsdax(machine)
    done = machine.run(".venv/bin/python tools/hardware_report.py", 1500)
    machine.run("cp build/hardware-report.tar.gz /mnt/share/").ok()
    with tarfile.open(machine.share / "hardware-report.tar.gz") as archive:
        archive.extractall(machine.share)
    report = machine.share / "hardware-report"
    cases = ElementTree.parse(report / "junit.xml").iter("testcase")
    passed = {case.get("name") for case in cases if not len(case)}
    assert (done.code, passed) == (0, RAN), done
    findings = json.loads((report / "doctor.json").read_text())["findings"]
    assert any(finding["check"] == "persistent memory" for finding in findings)
    here = json.loads(machine.run("./nearfar topo --json -").ok())
    saved = json.loads(
        machine.run("./nearfar topo --from build/hardware-report/machine --json -").ok()
    )
    for key in ("id", "nodes", "caches", "cpus", "dax_devices", "virtual_machine"):
        assert saved[key] == here[key]
    assert [r["persistence"] for r in saved["pmem_regions"]] == ["claimed"]
    tables = {path.name for path in report.glob("machine/sys/firmware/acpi/tables/*")}
    assert tables >= {"SRAT"}
