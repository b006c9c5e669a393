"""Traces of other simulators, imported and exported."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import RunNearfar
from tracing import EMULATOR_WORKS, stats

FORMS = {
    "ramulator": "LD 0x1000\nST 0x2040\nLD 0x1040\n",
    "dramsim3": "0x1000 READ 1\n0x2040 WRITE 2\n0x1040 READ 5\n",
    "dramsys": "1: (64) read 0x1000\n2: (64) write 0x2040\n5: (64) read 0x1040\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_other_simulators_traces_go_in_and_out(
    form: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    (tmp_path / "theirs").write_text(FORMS[form])
    assert run_nearfar("trace", "import", "theirs", "--from", form, "-o", "T").code == 0
    found = stats(run_nearfar, tmp_path / "T")
    assert found["complete"]
    assert (found["loads"], found["stores"], found["records"]) == (2, 1, 3)
    assert run_nearfar("trace", "export", "T", "--to", form, "-o", "back").code == 0
    assert (tmp_path / "back").read_text() == FORMS[form]
    (tmp_path / "theirs").write_text(FORMS[form] + "LD\n")
    before = (tmp_path / "T").read_bytes()
    into = ["--from", form, "-o"]
    run_nearfar("trace", "import", "theirs", *into, "U").assert_refused(2, "line 4")
    run_nearfar("trace", "import", "none", *into, "U").assert_refused(2, "none")
    run_nearfar("trace", "import", "theirs", *into, "T").assert_refused(2, "T exists")
    if EMULATOR_WORKS:
        refused = run_nearfar("trace", "-o", "U", "--l1", "48KiB/8", "--", "true")
        refused.assert_refused(2, "invalid first level of 96 sets of 8 ways")
    assert not (tmp_path / "U").exists()
    assert (tmp_path / "T").read_bytes() == before
    assert not list(tmp_path.glob("*.partial"))
    run_nearfar("trace", "export", "T", "--to", form, "-o", "back").assert_refused(2, "File exists")
    (tmp_path / "theirs").write_text(FORMS[form] * 5000)
    (tmp_path / "T").unlink()
    assert run_nearfar("trace", "import", "theirs", "--from", form, "-o", "T").code == 0
    limited = f"ulimit -f 100; exec {sys.executable} -m nearfar.cli.app trace export T"
    done = subprocess.run(
        ["bash", "-c", f"{limited} --to {form} -o full"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done
    assert "File too large" in done.stderr
    assert not (tmp_path / "full").exists()


def test_dramsys_lines_with_data_and_other_lengths(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("# c\n0:\twrite 0x0 0x00ff\n7:\t(128)\tread 0x80\n")
    assert run_nearfar("trace", "import", "theirs", "--from", "dramsys", "-o", "T").code == 0
    found = stats(run_nearfar, tmp_path / "T")
    assert (found["loads"], found["stores"]) == (2, 1)
    for wrong in ("0 read 0x0", "0: (0) read 0x0", "0: (64 read 0x0", "0: load 0x0", "0: read x"):
        (tmp_path / "theirs").write_text(f"0: read 0x0\n{wrong}\n")
        done = run_nearfar("trace", "import", "theirs", "--from", "dramsys", "-o", "U")
        done.assert_refused(2, "line 2")


@pytest.mark.parametrize(("form", "hits"), [("dramsim3", 0.0), ("champsim", 0.99)])
def test_addresses_of_memory_traces_are_kept(
    form: str, hits: float, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    addresses = [(i % 2) << 33 | 1 << 50 for i in range(400)]  # one bank, two rows
    if form == "dramsim3":
        text = "".join(f"0x{a:x} READ {i * 1000}\n" for i, a in enumerate(addresses))
        (tmp_path / "theirs").write_text(text)
    else:
        loads = (struct.pack("<QBB6x6Q", 1, 0, 0, 0, 0, a, 0, 0, 0) for a in addresses)
        (tmp_path / "theirs").write_bytes(b"".join(loads))
    assert run_nearfar("trace", "import", "theirs", "--from", form, "-o", "T").code == 0
    simulate = ("sim", "T", "--far", "ddr4-3200", "--core", "blocking", "--json", "-", "--quiet")
    found = json.loads(run_nearfar(*simulate).stdout)
    assert found["tiers"]["far"]["row_hit_share"] == pytest.approx(hits, abs=0.02)
    assert any("--instruction-ns" in limit for limit in found["limits"])


def test_champsim_and_ramulators_older_forms(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    one = struct.pack("<QBB2B4B2Q4Q", 0x401000, 0, 0, *[0] * 6, 0x2040, 0, 0x1000, 0x1040, 0, 0)
    (tmp_path / "c").write_bytes(2 * one)
    assert run_nearfar("trace", "import", "c", "--from", "champsim", "-o", "C").code == 0
    found = stats(run_nearfar, tmp_path / "C")
    assert (found["loads"], found["stores"], found["instructions"]) == (4, 2, 2)
    assert run_nearfar("trace", "export", "C", "--to", "champsim", "-o", "c2").code == 0
    back = (tmp_path / "c2").read_bytes()
    assert len(back) == 6 * 64
    assert struct.unpack_from("<Q24x4Q", back)[:2] == (0x401000, 0x1000)
    (tmp_path / "c").write_bytes(one[:-1])
    run_nearfar("trace", "import", "c", "--from", "champsim", "-o", "cut").assert_refused(
        2, "is not a complete champsim trace: instruction 0"
    )
    (tmp_path / "r").write_text("0x1000 R\n0x2000 W\n3 4096\n4 4160 8192\n")
    assert run_nearfar("trace", "import", "r", "--from", "ramulator", "-o", "R").code == 0
    found = stats(run_nearfar, tmp_path / "R")
    assert (found["loads"], found["stores"], found["instructions"]) == (3, 2, 11)


@pytest.mark.parametrize("form", [*FORMS, "champsim"])
@pytest.mark.parametrize("content", [b"", bytes(4096), b"\n# nothing\n", b"\0" * 64 + b"LD 1\n"])
def test_a_file_without_accesses_is_not_a_trace(
    form: str, content: bytes, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    (tmp_path / "theirs").write_bytes(content)
    refused = run_nearfar("trace", "import", "theirs", "--from", form, "-o", "T")
    refused.assert_refused(2, "theirs")
    assert not (tmp_path / "T").exists()


@pytest.mark.parametrize("form", FORMS)
def test_a_file_whose_end_was_never_written_is_refused(
    form: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    whole = FORMS[form].encode()
    for damaged in (whole + bytes(512), whole[:-8] + bytes(8), whole + b"#" * 300 + b"\0"):
        (tmp_path / "theirs").write_bytes(damaged)
        refused = run_nearfar("trace", "import", "theirs", "--from", form, "-o", "T")
        refused.assert_refused(2, f"is not a line of a {form} trace")
    (tmp_path / "theirs").write_bytes(b"#" * 1000 + b"\n" + whole)
    assert run_nearfar("trace", "import", "theirs", "--from", form, "-o", "T").code == 0


def test_instructions_that_were_never_written_are_refused(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    instruction = struct.pack("<Q8B6Q", 0x401000, *[0] * 8, 0, 0, 0x1000, 0, 0, 0)
    (tmp_path / "theirs").write_bytes(instruction * 2 + bytes(64) + instruction)
    refused = run_nearfar("trace", "import", "theirs", "--from", "champsim", "-o", "T")
    refused.assert_refused(2, "'theirs' is not a complete champsim trace: instruction 2")


def test_quiet_statistics_still_report_damage(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text(FORMS["ramulator"])
    run_nearfar("trace", "import", "theirs", "--from", "ramulator", "-o", "T", "-q")
    assert run_nearfar("trace", "stats", "T", "-q").stderr == ""
    (tmp_path / "cut").write_bytes((tmp_path / "T").read_bytes()[:-20])
    assert run_nearfar("trace", "stats", "cut", "-q").stderr.startswith("nearfar: cut: ")
