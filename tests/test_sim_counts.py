"""Counts mode against equations by hand and against the published ranges of the thesis."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import RunNearfar
from nearfar.errors import BadInputError
from nearfar.profiles import load_profile
from nearfar.records.choices import WritePolicy
from nearfar.records.profile import Figure, Profile
from nearfar.records.simulation import CountsSimulation
from nearfar.simulation.access_counts import AccessCounts, simulate

#: Quicksort of 2^18 elements, accesses after the caches, as the Seoul thesis prints them.
DEFAULT = {"near": {"reads": 11687, "writes": 2022}, "far": {"reads": 93692, "writes": 39656}}
PLACED = {"near": {"reads": 82611, "writes": 42763}, "far": {"reads": 24730, "writes": 849}}
#: Its claims for quicksort over 2^10 to 2^18: least and most that hmalloc saves.
RUNTIME, ENERGY = (0.12, 0.29), (0.33, 0.42)

DRAM, PCM = load_profile("dram-snu"), load_profile("pcm-snu-ns")


def run(
    counts: object, cpu_time_s: float, far: Profile = PCM, writes: WritePolicy = "blocking"
) -> CountsSimulation:
    checked = AccessCounts.model_validate(counts)
    return simulate(checked, DRAM, far, cpu_time_s=cpu_time_s, write_policy=writes)


def savings(cpu_time_s: float, far: Profile, writes: WritePolicy) -> tuple[float, float]:
    default, placed = (run(counts, cpu_time_s, far, writes) for counts in (DEFAULT, PLACED))
    return 1 - placed.time_s / default.time_s, 1 - placed.energy_J / default.energy_J


def only(tier: str, kind: str, number: int = 1000) -> object:
    counts = {t: {"reads": 0, "writes": 0} for t in ("near", "far")}
    counts[tier][kind] = number
    return counts


@pytest.mark.parametrize(
    ("tier", "kind", "held_ns", "current_ns"),
    [
        ("near", "reads", 10 + 15 + 6, 110 * 10 + 220 * 6),
        ("near", "writes", 10 + 6 + 10, 110 * 20 + 220 * 6),
        ("far", "reads", 37 + 15 + 6, 242 * 37 + 220 * 6),
        ("far", "writes", 37 + 6 + 100, 242 * 137 + 220 * 6),
    ],
)
def test_an_access_costs_its_timings(tier: str, kind: str, held_ns: int, current_ns: int) -> None:
    found = run(only(tier, kind), 0.0)
    time_s = 1000 * held_ns * 1e-9
    assert found.time_s == pytest.approx(time_s)
    background = (62 + 62 + 240 * 74 / 3906) * time_s * 1e9
    assert found.energy_J == pytest.approx(1.5 * (1000 * current_ns + background) * 1e-12)


def test_cycles_are_read_as_cycles() -> None:
    found = run(only("far", "reads"), 0.0, load_profile("pcm-snu-cycles"))
    assert found.time_s == pytest.approx(1000 * (37 * 1.5 + 15 + 6) * 1e-9)


@pytest.mark.parametrize("cpu_ms", [17.5, 20, 23, 26, 29.5])
def test_quicksort_is_in_the_published_ranges(cpu_ms: float) -> None:
    time, energy = savings(cpu_ms * 1e-3, PCM, "blocking")
    assert RUNTIME[0] <= time <= RUNTIME[1]
    assert ENERGY[0] <= energy <= ENERGY[1]


def test_posted_writes_shrink_the_gain_about_threefold() -> None:
    saved = {
        writes: run(DEFAULT, 0.0, PCM, writes).time_s - run(PLACED, 0.0, PCM, writes).time_s
        for writes in ("blocking", "posted")
    }
    assert 2.5 <= saved["blocking"] / saved["posted"] <= 4.0


def without(profile: Profile, *keys: str) -> Profile:
    figures = {key: figure for key, figure in profile.figures.items() if key not in keys}
    return profile.model_copy(update={"figures": figures})


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        (("tRP_ns",), "tRP_ns"),
        (("vdd_V",), "vdd_V"),
        (("tREFI_ns",), "tREFI_ns"),
        (("tRFC_ns", "tREFI_ns"), "tRFC_ns"),
        (("refresh_current_mA",), "refresh_current_mA"),
    ],
)
def test_an_incomplete_device_is_refused_by_the_figure(keys: tuple[str, ...], named: str) -> None:
    with pytest.raises(BadInputError, match=f"no (figure )?{named}"):
        run(DEFAULT, 0.0, without(DRAM, *keys))


def with_figure(profile: Profile, key: str, figure: Figure) -> Profile:
    return profile.model_copy(update={"figures": {**profile.figures, key: figure}})


def test_a_contradictory_device_is_refused_by_the_figure() -> None:
    longer = DRAM.figures["tRFC_ns"].model_copy(update={"value": 4000.0})
    with pytest.raises(BadInputError, match="tRFC = 4000 ns"):
        simulate(
            AccessCounts.model_validate(DEFAULT),
            with_figure(DRAM, "tRFC_ns", longer),
            PCM,
            cpu_time_s=0.0,
            write_policy="blocking",
        )


def test_both_readings_in_one_file_are_refused() -> None:
    cycles = load_profile("pcm-snu-cycles")
    both = with_figure(cycles, "tRCD_ns", PCM.figures["tRCD_ns"])
    with pytest.raises(BadInputError, match="tRCD_ns = 37, but tRCD_cycles"):
        run(DEFAULT, 0.0, both)


def test_the_verb_prints_its_document(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    file = tmp_path / "counts.json"
    file.write_text(json.dumps(DEFAULT))
    done = run_nearfar(
        "sim",
        "--counts",
        str(file),
        "--near",
        "dram-snu",
        "--far",
        "pcm-snu-ns",
        "--page-policy",
        "closed",
        "--write-policy",
        "blocking",
        "--cpu-time-s",
        "0.02",
        "--json",
        "-",
    )
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["time_s"] == pytest.approx(0.02 + found["memory_time_s"])
    assert found["provenance"]["energy_J"]["origin"] == "simulated"
    assert found["tiers"]["far"]["reads"] == DEFAULT["far"]["reads"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{", "JSON"),
        ('{"near": {"reads": 1, "writes": 2}}', "far"),
        ('{"near": {"reads": -1, "writes": 2}, "far": {"reads": 1, "writes": 1}}', "near.reads"),
        ('{"near": {"reads": 1.5, "writes": 2}, "far": {"reads": 1, "writes": 1}}', "near.reads"),
        (
            '{"near": {"reads": 1, "writes": 2, "hits": 1}, "far": {"reads": 1, "writes": 1}}',
            "hits",
        ),
    ],
)
def test_damaged_counts_are_refused(
    text: str, named: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    file = tmp_path / "counts.json"
    file.write_text(text)
    done = run_nearfar("sim", "--counts", str(file))
    assert done.code == 2
    assert named in done.stderr
    assert "next:" in done.stderr


def test_a_missing_file_and_a_wrong_number_are_refused(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    done = run_nearfar("sim", "--counts", str(tmp_path / "none.json"))
    assert done.code == 2
    file = tmp_path / "counts.json"
    file.write_text(json.dumps(DEFAULT))
    assert run_nearfar("sim", "--counts", str(file), "--cpu-time-s", "nan").code == 2
    assert run_nearfar("sim", "--counts", str(file), "--far", "optane-100").code == 2
