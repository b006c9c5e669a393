"""Input that ``nearfar sim`` refuses, and its report of a trace that is not whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import RunNearfar


@pytest.fixture
def trace(run_nearfar: RunNearfar, tmp_path: Path) -> Path:
    """A whole trace, with writes, of several blocks."""
    done = run_nearfar(
        "bench", "sort", "--problem-size", "200000", "--trace", "T", "--after", "l1", "--quiet"
    )
    assert done.code == 0, done
    return tmp_path / "T"


def test_a_truncated_trace_is_refused_unless_the_user_accepts_it(
    run_nearfar: RunNearfar, trace: Path
) -> None:
    content = trace.read_bytes()
    (trace.parent / "cut").write_bytes(content[: len(content) * 2 // 3])
    middle = len(content) * 2 // 3
    damaged = content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]
    (trace.parent / "damaged").write_bytes(damaged)
    for file, why in (("cut", "its end is missing"), ("damaged", "damaged at offset")):
        for verb in (["sim", file], ["trace", "export", file, "--to", "ramulator", "-o", "out"]):
            done = run_nearfar(*verb)
            done.assert_refused(2, f"{file} is truncated: ")
            assert why in done.stderr
            assert "--truncated" in done.stderr.partition("next: ")[2]
            assert not (trace.parent / "out").exists()
    export = ("trace", "export", "cut", "--to", "ramulator", "-o", "out", "--truncated")
    assert run_nearfar(*export).code == 0


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_truncated_trace_is_reported_quiet_or_not(
    run_nearfar: RunNearfar, trace: Path, quiet: list[str]
) -> None:
    (trace.parent / "cut").write_bytes(trace.read_bytes()[: trace.stat().st_size * 2 // 3])
    done = run_nearfar("sim", "cut", "--truncated", "--json", "-", *quiet)
    assert done.code == 0, done
    assert "the trace is cut short at offset" in done.stderr
    found = json.loads(done.stdout)
    assert found["requests"] > 0
    assert any("cut short" in warning for warning in found["warnings"])


@pytest.mark.parametrize("verb", [["sim"], ["sim", "--engine", "both"], ["sim", "--quiet"]])
def test_a_trace_without_a_readable_record_is_refused(
    run_nearfar: RunNearfar, trace: Path, verb: list[str]
) -> None:
    fields = int.from_bytes(trace.read_bytes()[12:16], "little")
    (trace.parent / "head").write_bytes(trace.read_bytes()[: 20 + fields + 40])
    done = run_nearfar(verb[0], "head", "--truncated", *verb[1:])
    done.assert_refused(2, "head holds no requests: the trace is cut short at offset")


def test_rules_that_matched_no_object_are_reported_quiet_or_not(
    run_nearfar: RunNearfar, trace: Path
) -> None:
    done = run_nearfar("sim", str(trace), "--place", "near:object=12345", "--quiet")
    assert done.code == 0, done
    assert "1 of 1 rules of the placement matched no object" in done.stderr


def test_both_engines_show_their_difference_in_text_and_json(
    run_nearfar: RunNearfar, trace: Path
) -> None:
    done = run_nearfar("sim", str(trace), "--engine", "both", "--far", "ddr4-3200", "--quiet")
    assert done.code == 0, done
    assert "fast against exact" in done.stdout
    assert "internal consistency" in done.stdout
    done = run_nearfar("sim", str(trace), "--engine", "both", "--far", "ddr4-3200", "--json", "-")
    assert json.loads(done.stdout)["difference"]["requests"] > 0


@pytest.mark.parametrize(
    "rule",
    [
        "near:page=-1",
        "near:page=0x10000000000000000",
        "near:page=0xffffffffffffffff",
        "far:address=0x2000-0x1000",
        "far:address=0x1000-0x10000000000000001",
        "near:object=99999999999999999999",
        "near:site=4294967296",
        "near:site=0x7fffffffffffffff1",
    ],
)
def test_a_rule_beyond_addresses_is_refused(
    run_nearfar: RunNearfar, trace: Path, rule: str
) -> None:
    done = run_nearfar("sim", str(trace), "--place", rule)
    done.assert_refused(2, f"--place {rule}")


@pytest.mark.parametrize("value", ["1e300", "inf", "nan", "1000001"])
def test_an_instruction_time_beyond_reason_is_refused(
    run_nearfar: RunNearfar, trace: Path, value: str
) -> None:
    run_nearfar("sim", str(trace), "--instruction-ns", value).assert_refused(2, "--instruction-ns")


def test_ctrl_c_says_that_it_was_interrupted(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "nearfar.cli.app",
            "sim",
            "--pattern",
            "random",
            "--requests",
            "1000000000",
            "--engine",
            "exact",
            "--far",
            "ddr4-3200",
        ],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    ticks = 0
    while process.poll() is None and ticks < 3 * os.sysconf("SC_CLK_TCK"):  # it simulates by then
        time.sleep(0.05)
        ticks = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11])
    assert "_native" in Path(f"/proc/{process.pid}/maps").read_text()
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == "nearfar: interrupted\n"
    assert out == ""
