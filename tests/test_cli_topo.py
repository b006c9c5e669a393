"""``nearfar topo`` and ``nearfar doctor`` as the shell sees them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from nearfar.cli.app import main

MACHINES = Path(__file__).parent / "fixtures" / "machines"


@pytest.mark.parametrize("name", ["cxl-expander", "optane-appdirect", "optane-memory-mode"])
def test_text(name: str, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    assert main(["topo", "--from", str(MACHINES / name)]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    assert text == snapshot


def test_a_region_of_unknown_persistence_domain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path(shutil.copytree(MACHINES / "optane-appdirect", tmp_path / "m", symlinks=True))
    (copy / "sys/bus/nd/devices/ndbus0/region0/persistence_domain").write_text("\n")
    assert main(["topo", "--from", str(copy)]) == 0
    table = capsys.readouterr().out.partition("Persistent regions")[2]
    row = next(line for line in table.splitlines() if "region0" in line)
    assert "unknown" in row


def test_json_is_one_document_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", "--from", str(MACHINES / "cxl-expander"), "--json", "-"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    far = next(tier for tier in document["tiers"] if tier["alias"] == "far")
    assert far["spec"] == "numa:1"
    assert far["read_latency_ns"] == 250
    assert far["provenance"]["read_latency_ns"]["origin"] == "claimed"
    assert printed.err == ""


def test_json_to_a_file_keeps_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "machine.json"
    assert main(["topo", "--from", str(MACHINES / "two-sockets"), "--json", str(file)]) == 0
    assert json.loads(file.read_text())["id"] in capsys.readouterr().out


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("verb", ["topo", "doctor"])
def test_truncated_description(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], verb: str, share: float
) -> None:
    copy = Path(shutil.copytree(MACHINES / "two-sockets", tmp_path / "m", symlinks=True))
    text = (copy / "hwloc.xml").read_text()
    (copy / "hwloc.xml").write_text(text[: int(len(text) * share)])
    assert main([verb, "--from", str(copy)]) == 2
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "m/hwloc.xml is not a machine description of hwloc, or is damaged" in printed.err
    assert "next:" in printed.err
    assert len(printed.err.splitlines()) == 2


def test_missing_directory(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", "--from", "no/such/machine"]) == 2
    assert "there is no no/such/machine" in capsys.readouterr().err


def test_doctor_of_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", "-"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert len(findings) == 24
    assert len({finding["check"] for finding in findings}) == 24
    assert {finding["level"] for finding in findings} <= {"ok", "note", "warning", "unknown"}


def test_doctor_lists_the_worst_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--from", str(MACHINES / "two-sockets")]) == 0
    text = capsys.readouterr().out
    assert text.startswith("warning  frequency governor")
    assert "→ sudo cpupower frequency-set -g performance" in text
    assert max(map(len, text.splitlines())) <= 100
