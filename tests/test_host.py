"""The measured host of this machine: stored once, read back, pinned, and not trusted if damaged."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from conftest import RunNearfar
from nearfar import api
from nearfar.cli.app import main
from nearfar.errors import MachineError
from nearfar.machine.topology import this_machine
from nearfar.measure import last_cache
from nearfar.measure.chases import AT_ONCE, REVISITED, SPACED, Chase
from nearfar.measure.host import HostMeter
from nearfar.measure.host_figures import reorder_window
from nearfar.measure.host_regions import LARGEST, SPACINGS, Regions
from nearfar.measure.last_cache import Sweeps
from nearfar.measure.memory import MemoryMeter, MemoryPlan, Pass, Timed, _is_settled
from nearfar.measure.session import Samples, Session
from nearfar.model.host_costs import WINDOW, costs_of
from nearfar.place.memory_costs import memory_of
from nearfar.profiles import load_host, load_profile, stored_host
from nearfar.profiles.sheets import read_host, to_toml
from nearfar.records.advice import AdviceResult, FarAdvice
from nearfar.records.profile import Host
from nearfar.records.simulation import Simulation
from nearfar.stats import median
from nearfar.tracing.caches import caches_of
from nearfar.workflows import advice_basis, host_here
from nearfar.workflows.host_here import HostChoice, StudiedHost, host_for
from nearfar.workflows.memories import tier_profile
from nearfar.workflows.observation import NearMemory
from nearfar.workflows.simulating import SimRequest
from published import competition
from stored_host import LAST_CACHE, fixed_host, scalar, store

MIB = 1 << 20
SMALL, LARGE = "dram,pages=4k", "dram,pages=thp"


class Notes:
    """A progress bar that keeps its notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def step(self, what: str, done: float) -> None:
        """Ignored."""

    def note(self, text: str) -> None:
        """Kept."""
        self.notes.append(text)


@pytest.fixture
def progress() -> Notes:
    return Notes()


@pytest.fixture
def session(progress: Notes) -> Session:
    return Session(this_machine().id, 1, progress)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data directory of the user."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "nearfar" / "hosts" / f"{this_machine().id}.toml"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Measurements take no time and give the fixed host; returns the tiers of each."""
    asked: list[list[str]] = []

    def measure(_session: Session, _cpu: int, tiers: Sequence[str]) -> Host:
        asked.append(list(tiers))
        return fixed_host(provisional=True)

    monkeypatch.setattr(host_here, "_measured", measure)
    return asked


def test_a_host_is_read_back_as_it_was_written(data: Path) -> None:
    host = fixed_host()
    path = store(host)
    assert path == data
    assert read_host(path) == host
    assert stored_host.read(this_machine().id).host == host
    assert load_host("this") == host
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_host_that_cannot_be_stored_leaves_nothing(data: Path) -> None:
    (data / "kept").mkdir(parents=True)
    with pytest.raises(MachineError, match=f"cannot write {data}:") as error:
        store(fixed_host())
    assert "XDG_DATA_HOME" in error.value.next_step
    assert list(data.parent.iterdir()) == [data]


def test_the_data_directory_is_that_of_the_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    for value in ("", "relative"):
        monkeypatch.setenv("XDG_DATA_HOME", value)
        assert stored_host.path_of("m") == Path("/home/ann/.local/share/nearfar/hosts/m.toml")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert stored_host.path_of("m") == Path("/data/nearfar/hosts/m.toml")


def test_the_machine_is_measured_once(
    data: Path, measured: list[list[str]], session: Session, progress: Notes
) -> None:
    first = host_for(HostChoice(), session, [SMALL])
    assert data.exists()
    assert host_for(HostChoice(), session, [SMALL, LARGE]) == first
    assert measured == [["dram", SMALL]]
    host_for(HostChoice(remeasure=True), session)
    assert len(measured) == 2
    assert progress.notes == []


def test_simulations_and_splits_measure_the_machine_once(
    data: Path, measured: list[list[str]], tmp_path: Path
) -> None:
    request = SimRequest(pattern="random", near="dram", placement="all-near", requests=1000)
    done = api.simulate(request)
    assert isinstance(done, Simulation)
    assert done.tiers.near.p50_latency_ns == pytest.approx(155, rel=0.05)  # of the stored host
    model = tmp_path / "m.json"
    assert main(["fit", "contention", str(competition("far-far")), "--out", str(model)]) == 0
    array, threads = api.SplitArray(5000, 5000), api.SplitThreads(1, 1)
    api.predict_split(model, array, threads)
    assert measured == [["dram"]]
    api.predict_split(model, array, threads, remeasure=True)
    assert len(measured) == 2
    assert data.exists()


def test_a_tier_that_the_machine_lacks_is_not_simulated(
    data: Path, measured: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", "--pattern", "random", "--near", "numa:77"]) != 0
    assert "no NUMA node 77" in capsys.readouterr().err
    assert not measured


DAMAGES: dict[str, tuple[Callable[[str], str], str]] = {
    "cut": (lambda text: text[: text.rindex('"')], "is damaged"),  # within a string
    "empty": (lambda _: "", "schema_version"),
    "another version": (
        lambda text: text.replace("schema_version = 1", "schema_version = 99"),
        "schema_version 99",
    ),
    "impossible": (
        lambda text: text.replace("[figures.l1_load_ns]", "[figures.l1_load]"),
        "unit",
    ),
    "another machine": (
        lambda text: text.replace(this_machine().id, "0123456789ab"),
        "is not a measurement of this machine",
    ),
    "not measured": (
        lambda text: text.replace("[measured]", "[memories]"),
        "",
    ),
    "binary": (lambda _: "\0", "binary"),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_host_is_measured_again_with_a_note(
    how: str, data: Path, measured: list[list[str]], session: Session, progress: Notes
) -> None:
    damage, words = DAMAGES[how]
    store()
    data.write_text(damage(data.read_text()))
    assert load_host("this").measured is None  # what the system reports
    assert host_for(HostChoice(), session) == fixed_host(provisional=True)
    assert len(measured) == len(progress.notes) == 1
    assert words in progress.notes[0]
    assert progress.notes[0].endswith("measuring this machine again")
    assert str(data) in progress.notes[0]
    assert stored_host.read(this_machine().id).host is not None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_place_costs_no_answer(
    data: Path, measured: list[list[str]], session: Session, progress: Notes
) -> None:
    data.parent.parent.parent.chmod(0o500)
    assert host_for(HostChoice(), session).measured is not None
    assert "the host is not stored: cannot write" in progress.notes[0]


def test_a_file_in_the_way_costs_no_answer(
    data: Path, measured: list[list[str]], session: Session, progress: Notes
) -> None:
    data.parent.parent.write_text("a file")
    assert host_for(HostChoice(), session).measured is not None
    assert any("the host is not stored: cannot write" in note for note in progress.notes)


def test_a_further_memory_is_added(
    data: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    store()
    more = fixed_host().memories[SMALL]
    monkeypatch.setattr(
        host_here,
        "_with_more",
        lambda _, host, tiers: host.model_copy(
            update={"memories": {**host.memories, **dict.fromkeys(tiers, more)}}
        ),
    )
    host_for(HostChoice(), session, ["dram", "shm:"])
    assert set(load_host("this").memories) == {SMALL, LARGE, "shm:"}


def test_a_named_host_lacks_no_memory_of_this_machine(data: Path, session: Session) -> None:
    store()
    host = host_for(HostChoice("xeon-5218r"), session, ["dram"])
    assert host.name == "xeon-5218r"
    assert tier_profile(host, "dram", 1).scalar("read_latency_ns") == 155
    with pytest.raises(Exception, match="--remeasure has no effect on --host xeon-5218r"):
        host_for(HostChoice("xeon-5218r", remeasure=True), session)


def test_a_host_file_pins_all_figures(tmp_path: Path, data: Path, session: Session) -> None:
    file = tmp_path / "pinned.toml"
    file.write_text(to_toml(fixed_host().model_copy(update={"name": "pinned"})))
    host = host_for(HostChoice(str(file)), session, ["dram", LARGE])
    assert host.name == "pinned"
    assert tier_profile(host, LARGE, 1).scalar("page_bytes") == 2 * MIB
    assert not data.exists()


def test_page_walks_are_those_of_the_program_s_size() -> None:
    walks = [
        tier_profile(fixed_host(), SMALL, mib * MIB).scalar("page_walk_ns")
        for mib in (1, 64, 90, 128, 4096)
    ]
    assert walks[0] == walks[1] == 12
    assert walks[3] == walks[4] == 28
    assert 19 < walks[2] < 21
    assert tier_profile(fixed_host(), LARGE, 90 * MIB).scalar("page_walk_ns") == 0


def test_the_modeled_last_cache_is_the_measured_one_unless_given() -> None:
    host = fixed_host()
    found = caches_of(host, {}).llc
    assert found is not None
    assert found.size_bytes == LAST_CACHE[1]
    given = caches_of(host, {"llc": "2MiB"}).llc
    assert given is not None
    assert (given.size_bytes, given.ways) == (2 * MIB, found.ways)
    assert caches_of(host, {"llc": "none"}).llc is None
    tiny = host.figures["l3_bytes"].model_copy(update={"value": 1.2 * MIB, "low": 1.0 * MIB})
    small = host.model_copy(update={"figures": {**host.figures, "l3_bytes": tiny}})
    l2 = small.scalar("l2_bytes")
    assert (caches_of(small, {}).llc is None) == (1.5 * l2 > 1.2 * MIB)


def synthetic(size: float, noise: float, seed: int, sweeps: int = 24) -> Sweeps:
    """Sweeps over regions by an LRU cache of this size, with other work that lengthens some."""
    regions = [int(2 * MIB * 2 ** (i / 2)) for i in range(11)]
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(sweeps):
        hits = 1 - np.sqrt(np.maximum(1 - size / np.array(regions), 0))
        in_second = 1 - np.sqrt(1 - MIB / np.array(regions))
        times = in_second * 3 + (hits - in_second) * 12 + (1 - hits) * 155
        disturbed = random.random(len(regions)) < 0.4
        rows.append(times * (1 + noise * disturbed * random.random(len(regions))))
    return Sweeps(regions, np.array(rows), np.full(sweeps, 3.0), np.full(sweeps, 155.0))


@pytest.mark.parametrize("size", [3 * MIB, 7.5 * MIB, 12 * MIB, 20 * MIB, 32 * MIB])
def test_the_last_cache_is_found_next_to_disturbances(size: float) -> None:
    found = last_cache.fit(synthetic(size, 3.0, seed=1), MIB, 32 * MIB)
    assert found == pytest.approx(size, rel=0.06)


def test_repeated_measurements_of_the_last_cache_agree_within_their_intervals() -> None:
    repeats = [
        last_cache.interval(
            [synthetic(size, 3.0, seed), synthetic(size, 1.0, seed + 50)],
            MIB,
            32 * MIB,
            short=True,
            seed=seed,
        )
        for seed, size in enumerate((9 * MIB, 11 * MIB, 12 * MIB, 10 * MIB))
    ]
    for value, _, _ in repeats:
        assert all(low <= value <= high for _, low, high in repeats)
    for value, low, high in repeats:
        assert high / low < 3.5
        assert low < value < high


def test_a_cache_that_neighbors_fill_is_none() -> None:
    assert last_cache.fit(synthetic(MIB, 0.0, seed=1), MIB, 32 * MIB) == MIB


def test_chases_cover_the_last_cache_at_several_rates() -> None:
    chases = Regions.of(fixed_host(), 128 * MIB, 2).chases()
    revisited = {c.region_bytes for c in chases if c[:3:2] == ("thp", REVISITED)}
    for chains in (1, AT_ONCE):
        assert {Chase("thp", region, REVISITED, chains) for region in revisited} <= set(chases)
    assert max(revisited) >= 2 * LAST_CACHE[2]


def test_the_reorder_window_is_found_from_spaced_chases() -> None:
    regions = Regions.of(fixed_host(), 128 * MIB, 2)
    windows = {"integers": 13.0, "registers": 6.0, "empty": 15.0}
    latency, first = 150.0, 1.0
    times = {
        regions.once(level, SPACED, spacing): median([spent])
        for kind, window in windows.items()
        for spacing in SPACINGS[kind]
        for software in [spacing.instructions / 16]
        for level, spent in (
            ("l1_load_ns", software),
            ("near_read_latency_ns", software + (latency - first) / (1 + window / software)),
        )
    }
    for level, spent in (("l1_load_ns", first), ("near_read_latency_ns", latency)):
        times[regions.once(level)] = median([spent])
    found = reorder_window(regions, times)
    assert (found.low, found.value, found.high) == pytest.approx((6.0, 13.0, 15.0))
    assert {chase for chase in regions.chases() if chase.spacing} == set(times) - {
        chase for chase in times if not chase.spacing
    }
    assert costs_of(fixed_host()).window == WINDOW
    window = scalar("ns", 6.0, 13.0, 15.0)
    measured = fixed_host().model_copy(
        update={"figures": {**fixed_host().figures, "reorder_window_ns": window}}
    )
    seconds = costs_of(measured).window
    assert (seconds.low, seconds.value, seconds.high) == pytest.approx((6e-9, 13e-9, 15e-9))


def test_page_walks_are_timed_over_small_and_large_regions() -> None:
    def regions(most: int, large: int) -> list[int]:
        plan = MemoryPlan((SMALL,), 0, most * MIB, large * MIB)
        return [region // MIB for region in plan.regions]

    assert regions(128, 512) == [64, 128, 512]
    assert regions(1920, 512) == [64, 512, 1920]
    assert regions(128, 0) == [64, 128]
    assert regions(32, 0) == [32]


def test_both_page_sizes_have_the_same_latency() -> None:
    plan = MemoryPlan((SMALL, LARGE), 0, 128 * MIB, 512 * MIB)
    meter = MemoryMeter(plan)
    for number in range(4):
        epoch: Samples[Timed] = Samples()
        for timed in plan.grid:
            base = {"touch": 500.0, "load": 160.0, "read": 30e9, "ntwrite": 20e9}[timed.what]
            small = 20.0 if timed[:2] == ("load", SMALL) else 0.0
            epoch.add(timed, (base + small) / timed.chains + number, [])
        meter.samples.gather(epoch)
    made = meter.figures("nearfar", short=False)
    assert made[SMALL]["read_latency_ns"] == made[LARGE]["read_latency_ns"]
    assert made[SMALL]["read_latency_ns"].value == pytest.approx(160.75)
    walks = made[SMALL]["page_walk_by_region_ns"].points or []
    assert walks == [pytest.approx([region * MIB, 20]) for region in (64, 128, 512)]
    overlapped = made[SMALL]["overlapped_page_walk_by_region_ns"].points or []
    assert overlapped == [pytest.approx([region * MIB, 20]) for region in (64, 128, 512)]
    assert made[LARGE]["page_bytes"].value == 2 * MIB
    short = meter.figures("nearfar", short=True)
    wide, narrow = (f[SMALL]["read_latency_ns"].interval() for f in (short, made))
    assert wide[0] < narrow[0] <= narrow[1] < wide[1]


def test_the_interval_of_first_touches_includes_memory_that_a_hypervisor_took_back() -> None:
    meter = MemoryMeter(MemoryPlan((SMALL, LARGE), 0, 128 * MIB, 512 * MIB))
    for touch in (100.0, 101.0, 900.0) * 4:  # the third on fresh memory
        epoch: Samples[Timed] = Samples()
        for timed in meter.plan.grid:
            epoch.add(timed, touch if timed.what == "touch" else 160.0 / timed.chains, [])
        meter.samples.gather(epoch)
    figure = meter.figures("nearfar", short=False)[LARGE]["first_touch_ns"]
    assert figure.value == 100
    assert figure.low == 100
    assert 101 < (figure.high or 0) <= 900


class ProvisionalMeter:
    """Instead of ``HostMeter``: what an epoch finds is the same each time."""

    epochs = 0

    def __init__(self, *_: object) -> None:
        pass

    def epoch(self) -> None:
        self.epochs += 1

    def host(self) -> Host:
        return fixed_host(provisional=True)


class DisturbedMeter(ProvisionalMeter):
    """The same, while other programs run."""

    def host(self) -> Host:
        host = super().host()
        assert host.measured is not None
        disturbed = host.measured.model_copy(update={"epochs": 1, "disturbed": True})
        return host.model_copy(update={"measured": disturbed})


def test_a_study_keeps_no_disturbed_host_over_one_of_an_idle_machine(
    data: Path, session: Session, progress: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(fixed_host(provisional=True))
    monkeypatch.setattr("nearfar.measure.host.HostMeter", DisturbedMeter)
    studied = StudiedHost(session, ["dram"], 100.0)
    studied.epoch()
    (missing,) = studied.keep()
    assert "provisional after 8 epochs" in missing.why
    assert read_host(data).measured == fixed_host(provisional=True).measured


def test_a_study_keeps_no_provisional_host_over_a_complete_one(
    data: Path, session: Session, progress: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nearfar.measure.host.HostMeter", ProvisionalMeter)
    studied = StudiedHost(session, ["dram"], 100.0)
    studied.epoch()
    assert read_host(data).measured == fixed_host(provisional=True).measured, "for other sections"
    studied.epoch()  # too early: they are spread over the study
    (missing,) = studied.keep()
    assert "repeat nearfar study on an idle machine, or with more --time" in missing.why
    assert read_host(data).measured == fixed_host(provisional=True).measured
    assert "this host, provisional after 8 epochs: near memory 155 ns" in progress.notes[0]
    store()
    assert studied.keep() == []
    assert read_host(data).measured == fixed_host().measured
    short = StudiedHost(session, ["dram"], 5.0)
    short.epoch()
    short.keep()
    assert len(progress.notes) == 1


def test_the_host_can_be_shown(run_nearfar: RunNearfar) -> None:
    done = run_nearfar("show", "this", "--json", "-")
    assert done.code == 0, done.stderr
    assert json.loads(done.stdout)["measured"]["epochs"] == 8
    done = run_nearfar("show", "this")
    assert "dram,pages=4k" in done.stdout
    assert "8 epochs" in done.stdout


def test_a_short_measurement_next_to_other_programs_excludes_no_larger_cache(
    session: Session,
) -> None:
    meter = HostMeter(session, 0)
    regions = Regions.of(fixed_host(), LARGEST, 2)
    sweeps = synthetic(3 * MIB, 1.0, seed=1)
    at = {region: sweeps.rows[:, i].tolist() for i, region in enumerate(sweeps.regions)}
    for chase in regions.chases():
        region = min(at, key=lambda known: abs(known - chase.region_bytes))
        small = chase.region_bytes <= regions.levels["l2_load_ns"]
        values = [3.0] * len(sweeps.rows) if small else at[region]
        values = [155.0] * len(values) if chase.region_bytes == LARGEST else values
        meter._chases.raw[chase] = [value / chase.chains for value in values]
    reported = fixed_host().scalar("l3_bytes")
    meter._host = fixed_host()
    calm = meter._last_cache(short=True)["l3_bytes"]
    assert calm.value is not None
    assert calm.high is not None
    meter.disturbed = True
    beset = meter._last_cache(short=True)["l3_bytes"]
    assert (beset.value, beset.low) == (calm.value, calm.low)
    assert calm.high < reported == beset.high
    assert meter._last_cache(short=False)["l3_bytes"].note == calm.note


def disturbed_meter() -> MemoryMeter:
    """Reads of which 4.6 GB/s were seen while the thread ran for a half of the time; 20 GB/s of
    non-temporal stores."""
    meter = MemoryMeter(MemoryPlan((SMALL, LARGE), 0, 128 * MIB, 512 * MIB))
    for best in (1.0, 0.9):
        epoch: Samples[Timed] = Samples()
        for timed in meter.plan.grid:
            value = {"touch": 500.0, "load": 160.0 / best, "read": 4.6e9, "ntwrite": 20e9}
            rate = value[timed.what] * (best if timed.what in ("read", "ntwrite") else 1.0)
            rate += 20.0 if timed[:2] == ("load", SMALL) else 0.0
            epoch.add(timed, rate / timed.chains, [])
            share = 0.5 if timed.what == "read" else 0.8 if timed.what == "load" else 1.0
            epoch.companions[timed] = [share]
        meter.samples.gather(epoch)
    return meter


def test_a_disturbed_memory_has_its_best_values_and_the_range_of_an_idle_machine() -> None:
    meter = disturbed_meter()
    read = meter.figures("nearfar", short=True, disturbed=True)[SMALL]
    rate = read["read_bandwidth_by_threads_bytes_per_s"]
    # The median of the time that it ran, the half of all.
    assert rate.points == [[1.0, pytest.approx((9.2e9 + 8.28e9) / 2)]]
    assert rate.ranges is not None
    assert rate.ranges[0][1] == pytest.approx(2 * 20e9)
    latency = read["read_latency_ns"]
    assert latency.value == 160  # of huge pages
    assert latency.low == pytest.approx(160 * 0.8 * 0.9)
    assert rate.is_disturbed()
    assert latency.is_disturbed()
    walks = read["page_walk_by_region_ns"]
    assert walks.is_disturbed()
    assert [point[1] for point in walks.points or []] == [20] * 3
    assert [low for low, _ in walks.ranges or []] == [0] * 3
    calm = meter.figures("nearfar", short=True)[SMALL]
    assert not calm["read_bandwidth_by_threads_bytes_per_s"].is_disturbed()
    assert (calm["read_latency_ns"].low or 0) > 150
    long = meter.figures("nearfar", short=False, disturbed=True)[SMALL]
    assert not long["read_latency_ns"].is_disturbed()  # epochs over minutes


def test_a_cpu_time_that_lacks_another_moments_steal_makes_no_bandwidth() -> None:
    meter = disturbed_meter()
    meter.samples.companions[Timed("read", SMALL)] = [0.05, 0.06]
    read = meter.figures("nearfar", short=True, disturbed=True)[SMALL]
    rate = read["read_bandwidth_by_threads_bytes_per_s"]
    assert rate.points == [[1.0, pytest.approx(2 * 4.6e9)]]


def test_a_disturbed_bandwidth_caps_no_device() -> None:
    host = fixed_host(provisional=True)
    for disturbed, capped, rate in ((True, False, 17.8e9), (False, True, 4.6e9)):
        memories = disturbed_meter().figures("nearfar", short=True, disturbed=disturbed)
        near = memory_of(tier_profile(host.model_copy(update={"memories": memories}), SMALL, MIB))
        far = memory_of(load_profile("cxl-asic"), near)
        assert 64e9 / far.line == pytest.approx(rate, rel=0.1)
        assert far.capped is capped


def test_a_capped_bandwidth_is_shown_as_that_of_the_memory_that_caps_it() -> None:
    """The model uses the upper end of a disturbed range for both memories, and shows it of none."""
    memories = disturbed_meter().figures("nearfar", short=True, disturbed=True)
    host = fixed_host(provisional=True).model_copy(update={"memories": memories})
    near = tier_profile(host, SMALL, MIB)
    here = memory_of(near)
    device = load_profile("cxl-asic")
    fast = device.figures["read_bandwidth_bytes_per_s"].model_copy(update={"value": 900e9})
    figures = {**device.figures, "read_bandwidth_bytes_per_s": fast}
    figures.pop("read_bandwidth_by_threads_bytes_per_s", None)
    far = device.model_copy(update={"figures": figures})
    far_memory = memory_of(far, here)
    result = AdviceResult.model_construct(
        fars=[FarAdvice.model_construct(intervals={}, provenance={})], intervals={}, provenance={}
    )
    advice_basis.add(result, near, [far], [far_memory], NearMemory(near, here, near, here))
    assert far_memory.capped
    assert result.far_bandwidth_bytes_per_s == result.near_bandwidth_bytes_per_s
    ranges = result.intervals
    assert ranges["far_bandwidth_bytes_per_s"] == ranges["near_bandwidth_bytes_per_s"]
    assert 64e9 / here.line == pytest.approx(ranges["near_bandwidth_bytes_per_s"][1])


def test_passes_are_repeated_until_the_fastest_was_not_preempted() -> None:
    slow, whole = Pass(4e9, 0.4, []), Pass(30e9, 1.0, [])
    assert not _is_settled([slow] * 3)
    assert not _is_settled([slow, slow, whole])
    assert _is_settled([slow, whole, Pass(29e9, 1.0, [])])
    assert _is_settled([slow] * 24)


def test_the_shown_host_says_that_it_is_disturbed(run_nearfar: RunNearfar, data: Path) -> None:
    host = fixed_host(provisional=True)
    measured = host.measured.model_copy(update={"disturbed": True}) if host.measured else None
    memories = disturbed_meter().figures("nearfar", short=True, disturbed=True)
    store(host.model_copy(update={"measured": measured, "memories": memories}))
    done = run_nearfar("show", "this")
    store()
    assert "Disturbed: other programs ran meanwhile" in done.stdout
    assert "A measured" in done.stdout
    assert "disturbed" in done.stdout
    assert "ntwrite_bandwidth_by_threads_bytes_per_s" in done.stdout
    assert "…" not in done.stdout
