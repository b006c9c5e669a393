"""`nearfar sim` on synthetic streams: engines, placements, curves, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import RunNearfar
from nearfar.cli.app import main
from nearfar.errors import BadInputError
from nearfar.simulation.placements import parse

UNSIZED = ("sim", "--pattern", "random", "--requests", "20000")
STREAM = (*UNSIZED, "--size", "16MiB")
FAST = (*STREAM, "--engine", "fast")


def simulated(run_nearfar: RunNearfar, *arguments: str) -> dict[str, Any]:
    done = run_nearfar(*arguments, "--json", "-")
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_a_stream_has_the_keys_of_the_contract(run_nearfar: RunNearfar) -> None:
    found = simulated(
        run_nearfar,
        *STREAM,
        "--near",
        "ddr4-3200",
        "--far",
        "pcm-lee",
        "--placement",
        "interleave:1:1",
        "--write-share",
        "0.25",
        "--engine",
        "exact",
    )
    tiers = {name: found["tiers"][name] for name in ("near", "far")}
    assert found["time_s"] > 0
    assert found["energy_J"] == pytest.approx(sum(t["energy_J"] for t in tiers.values()))
    assert found["requests_per_s"] > 0
    assert sum(t["reads"] + t["writes"] for t in tiers.values()) == 20000
    assert tiers["near"]["reads"] == pytest.approx(tiers["far"]["reads"], rel=0.1)
    for tier in tiers.values():
        bounds, reads = zip(*tier["read_latency_histogram"], strict=True)
        assert sum(reads) == tier["reads"]
        assert list(bounds) == sorted(set(bounds))
        assert bounds[-1] >= tier["largest_latency_ns"]
        assert tier["p50_latency_ns"] in bounds
    assert found["provenance"]["time_s"]["origin"] == "simulated"
    assert found["provenance"]["requests_per_s"]["origin"] == "measured"


@pytest.mark.parametrize("device", ["ddr3-1333", "ddr4-3200", "pcm-lee", "cxl-ddr5"])
@pytest.mark.parametrize("pages", ["open", "closed"])
def test_both_engines_agree(run_nearfar: RunNearfar, device: str, pages: str) -> None:
    found = simulated(
        run_nearfar,
        *STREAM,
        "--far",
        device,
        "--near",
        device,
        "--engine",
        "both",
        "--page-policy",
        pages,
        "--write-share",
        "0.2",
    )
    difference = found["difference"]
    assert abs(difference["time_difference"]) <= 0.10  # at saturation
    assert abs(difference.get("energy_difference") or 0) <= 0.10


def test_settings_of_the_controller_reach_the_engine_and_the_record(
    run_nearfar: RunNearfar,
) -> None:
    stream = ("sim", "--pattern", "sequential", "--requests", "20000", "--write-share", "0.3")
    common = (*stream, "--far", "ddr4-3200", "--engine", "exact")
    default = simulated(run_nearfar, *common)
    assert default["controller"]["scheduler"] == "fr-fcfs"
    assert default["controller"]["write_drain"] == [32, 16, 1]
    assert default["controller"]["address_mapping"] == "rorabacobgch"
    settings = {
        "scheduler": ("--scheduler", "fcfs"),
        "write_drain": ("--write-drain", "8:0:4"),
        "address_mapping": ("--mapping", "rochrababgco"),
    }
    for key, flag in settings.items():
        found = simulated(run_nearfar, *common, *flag)
        assert found["controller"][key] != default["controller"][key]
        assert found["time_s"] != default["time_s"]
    capped = simulated(run_nearfar, *common, "--row-hit-cap", "1", "--mapping", "rorabacochbg")
    assert capped["controller"]["row_hit_cap"] == 1


def test_the_fast_engine_refuses_what_it_does_not_time_within_5_percent(
    run_nearfar: RunNearfar,
) -> None:
    far = ("--far", "pcm-lee", "--near", "pcm-lee")
    written = (*STREAM, *far, "--write-share", "0.4", "--engine", "fast")
    refused = run_nearfar(*written)
    refused.assert_refused(2, "the fast engine is not within 5 % of the exact one here: its time")
    assert "choose the exact engine" in refused.stderr
    wide = (*STREAM, "--far", "ddr4-3200", "--near", "ddr4-3200", "--window", "33")
    run_nearfar(*wide, "--engine", "fast").assert_refused(2, "more than 32 accesses in flight")
    for accepted in (
        (*written[:-1], "exact"),
        (*wide, "--engine", "exact"),
        (*STREAM, "--write-share", "0.04", "--window", "16", "--engine", "fast"),
        (*written, "--write-policy", "blocking", "--core", "blocking"),
    ):
        assert simulated(run_nearfar, *accepted)["requests"] == 20000
    for refused_by_fast in (written[:-2], wide):  # by default, the exact engine takes over
        found = simulated(run_nearfar, *refused_by_fast)
        assert found["engine"] == "exact"
        assert any("the fast engine" in warning for warning in found["warnings"])
    both = simulated(run_nearfar, *written[:-1], "both")
    assert both["difference"]["requests"] == 20000
    assert any("many writes" in limit for limit in both["limits"])


@pytest.mark.parametrize(
    ("far", "placement", "on_pcm"),
    [
        ("ddr4-3200", "all-far", False),
        ("pcm-lee", "all-far", True),
        ("pcm-snu-ns", "interleave:1:1", True),
    ],
)
def test_notes_on_pcm_are_those_of_results_on_pcm(
    run_nearfar: RunNearfar, far: str, placement: str, *, on_pcm: bool
) -> None:
    common = (*STREAM, "--near", "ddr4-3200", "--far", far, "--placement", placement)
    found = simulated(run_nearfar, *common, "--write-share", "0.4", "--engine", "both")
    text = " ".join(found["limits"])
    assert ("Flip-N-Write" in text) is on_pcm
    assert ("the energy of PCM" in text) is on_pcm


def test_a_near_memory_without_requests_is_reported(run_nearfar: RunNearfar) -> None:
    """All data is far by default: the time would be that of the default far memory."""
    named = (*FAST, "--near", "hbm2-2000")
    (said,) = simulated(run_nearfar, *named)["warnings"]
    assert said.startswith("no request reached near memory (hbm2-2000): all data is far")
    kept = run_nearfar(*named, "--out", "kept", "--quiet")
    assert said in kept.stderr
    assert said in " ".join(run_nearfar("show", "kept").stdout.split())
    for placement in ("all-near", "all-far"):
        assert not simulated(run_nearfar, *named, "--placement", placement)["warnings"]


def test_a_memory_that_is_not_chosen_and_not_used_has_no_notes(run_nearfar: RunNearfar) -> None:
    found = simulated(run_nearfar, *STREAM, "--near", "ddr4-3200", "--placement", "all-near")
    assert found["tiers"]["far"]["device"] == "pcm-snu-ns"
    assert not any("Flip-N-Write" in limit for limit in found["limits"])


def test_power_states_take_time_and_save_background_energy(run_nearfar: RunNearfar) -> None:
    stream = ("sim", "--pattern", "chase", "--requests", "5000", "--far", "ddr4-3200")
    common = (*stream, "--engine", "exact", "--page-policy", "closed")
    awake = simulated(run_nearfar, *common)
    asleep = simulated(run_nearfar, *common, "--power-down-after", "0")
    refreshed = simulated(run_nearfar, *common, "--self-refresh-after", "0")
    for found in (asleep, refreshed):
        assert found["time_s"] > awake["time_s"]
        assert "dram-snu has no figures of" in " ".join(found["limits"])

    def watts(found: dict[str, Any]) -> float:
        far: dict[str, Any] = found["tiers"]["far"]
        return float(far["energy_parts"]["background_J"] / found["time_s"])

    assert watts(refreshed) < watts(asleep) < watts(awake)
    assert "power_down_s" not in awake["tiers"]["far"]
    assert asleep["tiers"]["far"]["power_down_s"] > 0
    assert refreshed["tiers"]["far"]["self_refresh_s"] > awake["time_s"]
    commands, always = (found["tiers"]["far"]["refreshes"] for found in (refreshed, awake))
    assert commands / refreshed["time_s"] < always / awake["time_s"]
    assert asleep["controller"]["power_down_after_ns"] == 0


def test_threads_do_not_change_a_result(run_nearfar: RunNearfar) -> None:
    common = (*STREAM, "--far", "hbm2-2000", "--engine", "exact", "--core", "trace-time")
    one, two = (
        simulated(run_nearfar, *common, "--write-share", "0.3", "--threads", threads)
        for threads in ("1", "2")
    )
    assert len({bank["channel"] for bank in one["tiers"]["far"]["banks"] if bank["reads"]}) == 8
    del one["requests_per_s"], two["requests_per_s"]
    assert one == two


def test_near_is_faster_than_far_and_near_memory_helps(run_nearfar: RunNearfar) -> None:
    common = (*STREAM, "--near", "ddr4-3200", "--far", "pcm-lee")
    times = {
        place: simulated(run_nearfar, *common, "--placement", place, *more)["time_s"]
        for place, *more in [["all-near"], ["all-far"], ["memory-mode", "--near-size", "64MiB"]]
    }
    assert times["all-near"] < times["memory-mode"] < 1.3 * times["all-far"]


def test_blocking_writes_and_cores_take_longer(run_nearfar: RunNearfar) -> None:
    common = (*STREAM, "--far", "pcm-snu-ns", "--write-share", "0.3", "--engine", "exact")
    posted = simulated(run_nearfar, *common)["time_s"]
    single = simulated(run_nearfar, *common, "--core", "blocking")["time_s"]
    waiting = simulated(run_nearfar, *common, "--write-policy", "blocking", "--core", "blocking")
    assert posted < single < waiting["time_s"]


def test_wear_and_lifetime(run_nearfar: RunNearfar) -> None:
    written = (*STREAM, "--far", "pcm-lee", "--write-share", "1", "--engine", "exact")
    far = simulated(run_nearfar, *written)["tiers"]["far"]
    assert far["writes"] == 20000
    assert far["lines_written"] > 0.9 * 20000
    assert far["most_page_writes"] >= far["most_line_writes"] >= 1
    assert far["levelled_lifetime_s"] > far["lifetime_s"] > 0


def test_the_load_curve_rises(run_nearfar: RunNearfar) -> None:
    found = simulated(run_nearfar, "sim", "--curve", "--far", "ddr4-3200", "--requests", "20000")
    points = found["points"]
    assert points[-1]["latency_ns"] > 1.5 * points[0]["latency_ns"]
    assert found["bandwidth_bytes_per_s"] <= 25.6e9


def test_the_timeout_of_rows_is_set_and_recorded(run_nearfar: RunNearfar) -> None:
    timed = (*STREAM, "--engine", "exact", "--core", "blocking", "--page-policy", "timeout")
    found = {ns: simulated(run_nearfar, *timed, "--row-timeout", ns) for ns in ("0", "100", "1e6")}
    for ns, result in found.items():
        assert result["controller"]["timeout_ns"] == float(ns)
    assert simulated(run_nearfar, *timed)["controller"]["timeout_ns"] == 100
    assert found["0"]["time_s"] < found["1e6"]["time_s"]  # rows of random accesses are closed
    hits = {ns: result["tiers"]["far"]["row_hit_share"] for ns, result in found.items()}
    assert hits["0"] <= hits["100"] < hits["1e6"]
    assert "timeout_ns" not in simulated(run_nearfar, *STREAM)["controller"]


def test_a_device_without_energy_reports_none(run_nearfar: RunNearfar) -> None:
    found = simulated(run_nearfar, *STREAM, "--near", "ddr4-3200", "--far", "ddr5-3200")
    assert "energy_J" not in found
    assert any("ddr5-3200 has no energy figures" in limit for limit in found["limits"])


def test_energy_of_cells_and_of_the_row_buffer(run_nearfar: RunNearfar) -> None:
    """Lee's figures: an activate senses a row of 8 KiB, a line written writes its cells."""
    found = simulated(
        run_nearfar,
        "sim",
        "--pattern",
        "chase",
        "--requests",
        "1000",
        "--far",
        "pcm-lee",
        "--page-policy",
        "closed",
        "--core",
        "blocking",
    )
    parts = found["tiers"]["far"]["energy_parts"]
    assert parts["activate_J"] == pytest.approx(1000 * 2.47e-12 * 8192 * 8)
    assert parts["read_J"] == pytest.approx(1000 * 0.93e-12 * 512)
    written = simulated(
        run_nearfar,
        "sim",
        "--pattern",
        "sequential",
        "--requests",
        "1000",
        "--far",
        "pcm-lee",
        "--write-share",
        "1",
        "--engine",
        "exact",
    )
    parts = written["tiers"]["far"]["energy_parts"]
    assert parts["write_J"] == pytest.approx(1000 * (16.82 + 1.02) * 1e-12 * 512)
    assert any("pcm-lee has no background power" in limit for limit in found["limits"])


def test_the_core_is_as_wide_as_the_profile_was_measured(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    """A profile as `nearfar probe` writes it: bandwidth by threads, chases in parallel."""
    text = (
        'schema_version = 1\nkind = "device"\nname = "here"\ntitle = "here"\n'
        'description = "synthetic"\n[sources]\ntest = "a test"\n'
    )
    for key, unit, value in (
        ("read_latency_ns", "ns", 160),
        ("write_latency_ns", "ns", 160),
        ("read_bandwidth_bytes_per_s", "B/s", 64e9),
        ("write_bandwidth_bytes_per_s", "B/s", 64e9),
        ("read_parallelism", "count", 4),
    ):
        text += f'[figures.{key}]\nunit = "{unit}"\nvalue = {value}\nsource = "test"\n'
        text += 'confidence = "A"\n'
    file = tmp_path / "here.toml"
    file.write_text(text)
    found = simulated(run_nearfar, *STREAM, "--near", str(file), "--far", str(file))
    assert found["window"] == 4
    assert found["time_s"] == pytest.approx(20000 * 160e-9 / 4, rel=0.02)
    wider = simulated(
        run_nearfar, *STREAM, "--near", str(file), "--far", str(file), "--window", "8"
    )
    assert wider["time_s"] == pytest.approx(20000 * 160e-9 / 8, rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("sim",), "nothing to simulate"),
        (("sim", "--pattern", "random", "--curve"), "--pattern and --curve"),
        (("sim", "/nonexistent/trace"), "/nonexistent/trace"),
        ((*STREAM, "--placement", "somewhere"), "somewhere"),
        ((*STREAM, "--placement", "hot-pages"), "--near-size"),
        ((*STREAM, "--placement", "interleave:0:1"), "interleave"),
        ((*STREAM, "--place", "near:everything"), "near:everything"),
        ((*STREAM, "--far", "ssd-nvme"), "no figure"),
        ((*UNSIZED, "--size", "32"), "line of 64"),
        ((*UNSIZED, "--size", "65GiB"), "64 GiB"),
        (("sim", "--curve", "--engine", "both"), "one engine"),
        ((*STREAM, "--core", "blocking", "--window", "4"), "--window 4 has no effect"),
        ((*STREAM, "--near-size", "1MiB"), "--near-size"),
        ((*STREAM, "--place", "near:object=3"), "objects"),
        (("sim", "--curve", "--far", "optane-100-lens", "--page-policy", "closed"), "no rows"),
        (("sim", "--curve", "--far", "optane-100-lens", "--row-hit-cap", "4"), "no rows"),
        ((*STREAM, "--mapping", "chrorabacobg"), "address mapping 'chrorabacobg'"),
        ((*FAST, "--scheduler", "fcfs"), "the exact engine"),
        ((*FAST, "--far", "ddr4-3200", "--power-down-after", "5"), "the exact engine"),
        ((*STREAM, "--power-down-after", "5"), "no device has power-down (tXP)"),
        ((*STREAM, "--self-refresh-after", "5"), "no device has self-refresh (tXS)"),
        ((*FAST, "--page-policy", "timeout"), "the exact engine"),
        ((*STREAM, "--row-timeout", "20"), "--row-timeout has no effect with --page-policy open"),
        ((*FAST, "--write-policy", "blocking"), "the exact engine"),
        ((*STREAM, "--threads", "2"), "2 threads: channels depend on each other"),
        ((*STREAM, "--write-drain", "32"), "--write-drain 32"),
        ((*STREAM, "--write-drain", "16:32:1"), "write drain 16:32:1"),
        ((*STREAM, "--write-drain", "-1:-2:1"), "--write-drain -1:-2:1"),
    ],
)
def test_invalid_combinations_are_refused(
    arguments: tuple[str, ...], named: str, run_nearfar: RunNearfar
) -> None:
    done = run_nearfar(*arguments)
    done.assert_refused(2, named)


#: A value for each flag that not every source takes.
VALUES = {
    "--near": "ddr4-3200",
    "--far": "pcm-lee",
    "--placement": "all-near",
    "--place": "near:page=3",
    "--near-size": "1MiB",
    "--engine": "exact",
    "--core": "blocking",
    "--window": "4",
    "--threads": "2",
    "--page-policy": "closed",
    "--row-timeout": "50",
    "--scheduler": "fcfs",
    "--row-hit-cap": "4",
    "--write-drain": "8:0:4",
    "--power-down-after": "100",
    "--self-refresh-after": "1000",
    "--mapping": "rochrababgco",
    "--write-policy": "posted",
    "--instruction-ns": "0.5",
    "--requests": "100",
    "--size": "1MiB",
    "--write-share": "0.5",
    "--cpu-time-s": "1",
    "--seed": "2",
    "--out": "here",
}
#: Sources, and the flags that have no effect with them.
STREAMS_ALONE = ("--placement", "--place", "--near-size", "--core", "--window", "--threads")
IGNORED = {
    ("a.trace",): ("--requests", "--size", "--write-share", "--cpu-time-s", "--seed"),
    ("--pattern", "random"): ("--instruction-ns", "--cpu-time-s"),
    ("--curve",): (
        *STREAMS_ALONE,
        "--near",
        "--write-policy",
        "--instruction-ns",
        "--size",
        "--cpu-time-s",
    ),
    ("--counts", "c.json"): (
        *STREAMS_ALONE,
        *("--row-timeout", "--scheduler", "--row-hit-cap", "--write-drain", "--mapping"),
        *("--power-down-after", "--self-refresh-after"),
        "--engine",
        "--instruction-ns",
        "--requests",
        "--size",
        "--write-share",
        "--seed",
    ),
    ("--experiment", "seoul"): tuple(flag for flag in VALUES if flag != "--out"),
}


@pytest.mark.parametrize("source", IGNORED, ids=lambda source: source[0])
def test_flags_that_would_be_ignored_are_refused(
    source: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    for flag in IGNORED[source]:
        assert main(["sim", *source, flag, VALUES[flag]]) == 2
        assert f"{flag} has no effect with" in capsys.readouterr().err


def test_output_under_quiet(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    counts = tmp_path / "counts.json"
    counts.write_text('{"near": {"reads": 1, "writes": 1}, "far": {"reads": 1, "writes": 1}}')
    assert "--cpu-time-s" in run_nearfar("sim", "--counts", str(counts)).stderr
    quiet = run_nearfar("sim", "--counts", str(counts), "--quiet")  # warnings are of the result
    assert quiet.stderr == "no --cpu-time-s was given: this is the time of the memory alone\n"


def test_rules_and_plans(tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    plan.write_text(
        "hmalloc-plan 1\nunwind frame-pointers\n# big ones\n"
        "rule near site=5f0c9ab2+0x41a8<name:prog+0x10\nrule far size=64KiB..\ndefault near\n"
    )
    found = parse(str(plan), ["near:address=0x1000-0x3000", "far:page=0x7", "far:object=3"], 0)
    assert found.near_by_default
    assert found.ranges == [(0x1000, 0x3000, True), (0x7000, 0x8000, False)]
    assert [rule.object for rule in found.objects] == [3, -1, -1]
    assert found.objects[1].frames == (("5f0c9ab2", 0x41A8), ("name:prog", 0x10))
    assert found.objects[2].min_bytes == 64 << 10
    found.native()


@pytest.mark.parametrize(
    "line",
    [
        "rule near budget=2GiB",
        "rule near map=heap",
        "rule middle size=1..2",
        "rule near site=0x12",
        "hop",
    ],
)
def test_a_plan_that_cannot_be_simulated_is_refused_by_its_line(line: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    plan.write_text(f"hmalloc-plan 1\n{line}\n")
    with pytest.raises(BadInputError, match="plan:2: "):
        parse(str(plan), [], 0)
