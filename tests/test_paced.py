"""The emulated slow tier: its figures come from a profile, and are marked as emulated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import RunNearfar
from nearfar._native import ArrayBench, LatencyProbe, NativeError, parse_tier, topology
from nearfar.errors import BadInputError
from nearfar.measure.tiers import origin_of
from nearfar.profiles import load_profile
from nearfar.profiles.pacing import LINES_IN_FLIGHT, pace_of
from nearfar.records.figures import Origin

CPU = next(cpu["id"] for cpu in topology(None)["cpus"] if cpu["usable"])


def test_figures_are_those_of_the_profile() -> None:
    optane, pace = load_profile("optane-100"), pace_of("optane-100")
    one_thread = dict(optane.curve("read_bandwidth_by_threads_bytes_per_s"))[1.0]
    assert pace.read_line_ns == pytest.approx(64e9 / one_thread)
    assert pace.write_bytes_per_s == optane.scalar("write_bandwidth_bytes_per_s")
    cxl, pace = load_profile("cxl-asic"), pace_of("cxl-asic")
    assert pace.read_line_ns == cxl.scalar("read_latency_ns") / LINES_IN_FLIGHT
    assert pace.write_line_ns == pace.read_line_ns  # it has no figure for writes


def test_a_profile_without_bandwidth_or_of_no_name_is_refused() -> None:
    with pytest.raises(BadInputError, match="read_bandwidth_bytes_per_s"):
        parse_tier("paced:dram@pcm-lee")
    with pytest.raises(BadInputError, match="no device profile"):
        parse_tier("paced:dram@nothing")


def test_a_users_profile_paces_too(tmp_path: Path) -> None:
    from nearfar.profiles.sheets import write_profile

    write_profile(load_profile("optane-100"), tmp_path / "mine.toml")
    assert parse_tier(f"paced:dram@{tmp_path}/mine.toml")["kind"] == "dram"


def test_whatever_involves_it_is_emulated_and_says_how() -> None:
    origin, note = origin_of("dram", "paced:dram@optane-100")
    assert origin is Origin.EMULATED
    assert "optane-100" in note
    assert "ns a line read" in note


def test_a_loop_that_cannot_keep_the_pace_is_refused() -> None:
    with pytest.raises(NativeError, match="cannot keep the pace"):
        LatencyProbe("paced:dram@optane-100", 1 << 20, CPU)


def test_a_copy_is_no_faster_than_its_lines_allow() -> None:
    pace = pace_of("optane-100")
    tier = "paced:dram@optane-100"
    bench = ArrayBench(tier, "dram", tier, 1 << 18, [CPU])
    lines = (1 << 18) / 8
    min_s = lines * (2 * pace.read_line_ns + pace.write_line_ns) * 1e-9
    assert bench.repeat("copy", [CPU])["seconds"] > 0.95 * min_s  # jitter moves the mean a little


def test_a_probe_measures_bandwidth_and_lists_the_rest(
    tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    done = run_nearfar(
        "probe",
        "--tier",
        "paced:dram@optane-100",
        "--runs",
        "1",
        "--size",
        "8MiB",
        "--threads",
        "1",
        "--out",
        "r",
        "--json",
        "-",
    )
    assert done.code == 0, done.stderr
    points = json.loads(done.stdout)["bandwidth"]["points"]
    assert {p["provenance"]["bandwidth_bytes_per_s"]["origin"] for p in points} == {"emulated"}
    run = json.loads((tmp_path / "r" / "run.json").read_text())
    assert {"latency", "loaded"} <= {skipped["section"] for skipped in run["skipped"]}
    profile = (tmp_path / "r" / "profile.toml").read_text()
    assert 'origin = "emulated"' in profile


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ["bench", "stream", "--tier", "paced:dram@nothing"],
            2,
            "there is no device profile nothing",
        ),
        (["bench", "stream", "--tier", "paced:dram"], 2, "a device profile is missing"),
        (
            ["bench", "pipeline", "--quick", "--near", "paced:dram@optane-100"],
            3,
            "cannot keep the pace of optane-100",
        ),
    ],
)
def test_bad_tiers_end_with_a_sentence(
    arguments: list[str], code: int, said: str, run_nearfar: RunNearfar
) -> None:
    run_nearfar(*arguments).assert_refused(code, said)


def test_competition_and_pipeline_run_on_it(run_nearfar: RunNearfar) -> None:
    far = ("--far", "paced:dram@cxl-asic", "--near-threads", "1", "--far-threads", "1")
    done = run_nearfar("bench", "compete", *far, "--size", "1MiB", "--runs", "1", "--json", "-")
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    pace = pace_of("cxl-asic")
    most = 2 * 64e9 / (pace.read_line_ns + pace.write_line_ns)  # of a thread that copies
    assert 0 < document["far_bandwidth_bytes_per_s"] < 1.05 * most  # jitter moves the mean a little
    assert document["provenance"]["far_bandwidth_bytes_per_s"]["origin"] == "emulated"
    done = run_nearfar(
        "bench",
        "pipeline",
        *far,
        "--elements",
        "20000",
        "--iterations",
        "3",
        "--runs",
        "1",
        "--json",
        "-",
    )
    assert done.code == 0, done.stderr
    assert json.loads(done.stdout)["provenance"]["transfer_time_s"]["origin"] == "emulated"
