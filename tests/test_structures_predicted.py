"""Counted misses of structures, and what is predicted from them: known counts, limits that hold."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

import factories
from conftest import RunNearfar
from nearfar import _native
from nearfar.errors import BadInputError
from nearfar.measure.progress import silent
from nearfar.measure.session import Effort, Session
from nearfar.measure.study_plan import STUDY
from nearfar.measure.timed import Case, MapWork, SetWork
from nearfar.model import slowdowns, structure_results
from nearfar.model.devices import far_memory, is_disk, near_memory
from nearfar.model.host_costs import HostCosts, Walks, costs_of
from nearfar.model.map_work import Constant
from nearfar.model.pointer_structures import (
    InCache,
    Memory,
    Shape,
    Software,
    operation_time,
    software_of,
)
from nearfar.profiles import load_host, load_profile
from nearfar.records.figures import Origin
from nearfar.records.profile import Host
from nearfar.records.run import Sections
from nearfar.report.html.section import Context
from nearfar.report.html.sections.structures import section
from nearfar.simulation.cache_misses import (
    Caches,
    CacheVariant,
    LevelCounts,
    OperationCounts,
    clear_results,
    count_misses,
    count_misses_concurrently,
)
from nearfar.workflows import calibrating, host_here, structures_study
from nearfar.workflows.recording import open_session

needs_pools = pytest.mark.skipif(not hasattr(_native, "MapBench"), reason="without libpmemobj")

CACHES = Caches(((32 << 10, 8), (1 << 20, 16), (4 << 20, 16)), ((64, 4), (1536, 12)))


@needs_pools
def test_a_map_in_cache_misses_nothing_and_one_beyond_it_a_line_a_get() -> None:
    small = count_misses(MapWork("map", "get", 1000, 8, "shm:"), CACHES, 20_000, 0)
    assert small.operations == 1000
    assert all(v.levels[-1].load_misses < 0.02 for v in small.variants)
    assert small.fences == small.lines == 0
    large = count_misses(MapWork("map", "get", 400_000, 8, "shm:"), CACHES, 100_000, 0)
    for variant in large.variants:
        assert 0.4 < variant.far_load_misses < 1.1  # its bucket, of which a part is in cache
        assert variant.levels[-1].load_misses < variant.far_load_misses + 0.1
    assert large.walks > 0.2


@needs_pools
def test_a_long_list_comes_in_turn_and_waits_for_no_line() -> None:
    caches = replace(CACHES, flushes="keep")
    seen = count_misses(SetWork("list", "dram", 400_000, 0, "shm:"), caches, 8, 0)
    assert seen.operations == 8
    for variant in seen.variants:  # 16 B an entry, beyond 4 MiB, but for what walks had before
        loads, last = variant.levels[0].loads, variant.levels[-1]
        assert last.load_misses < 20
        assert last.prefetches > loads / 100
    assert seen.walks < 20


@needs_pools
def test_the_volatile_counterpart_has_no_far_memory_and_a_pool_flushes_its_changes() -> None:
    work = SetWork("hash", "pmem", 1024, 50, "shm:")
    seen = count_misses(work, CACHES, 20_000, 0)
    assert seen.fences == pytest.approx(seen.changed, rel=0.02)
    assert seen.flushes == pytest.approx(seen.lines)
    evicting = [v.levels[-1].load_misses for v in seen.variants if v.flush_evicts]
    keeping = [v.levels[-1].load_misses for v in seen.variants if not v.flush_evicts]
    assert min(evicting) > 10 * max(keeping)
    twin = count_misses(replace(work, medium="dram"), CACHES, 20_000, 0)
    assert twin.fences == twin.flushes == 0
    assert all(v.far_load_misses == 0 for v in twin.variants)


@needs_pools
def test_watching_is_repeatable_and_knows_other_sizes_of_the_last_cache() -> None:
    work = SetWork("skip_list", "dram", 20_000, 0, "shm:")
    caches = replace(CACHES, flushes="keep", last_bytes=(2 << 20, 64 << 20))
    seen = count_misses(work, caches, 5_000, 0)
    clear_results()
    again = count_misses(work, caches, 5_000, 0)
    assert again.changed == seen.changed
    sizes = [v.last_bytes for v in seen.variants]
    assert sizes == [4 << 20, 4 << 20, 2 << 20, 2 << 20, 64 << 20, 64 << 20]
    assert [v.last_bytes for v in seen.likely] == [4 << 20, 4 << 20]
    small, large = seen.variants[2], seen.variants[4]
    assert small.levels[-1].load_misses >= large.levels[-1].load_misses


@needs_pools
def test_concurrent_counts_are_those_of_single_runs() -> None:
    works = [SetWork("hash", "dram", entries, 50, "shm:") for entries in (100, 200, 300)]
    changed = [count_misses(work, CACHES, 1_000, 0).changed for work in works]
    clear_results()
    count_misses_concurrently(
        [(work, CACHES, 1_000) for work in works], sorted(os.sched_getaffinity(0))
    )
    seen = [count_misses(work, CACHES, 1_000, 0) for work in works]
    assert [one.changed for one in seen] == changed
    assert count_misses(works[0], CACHES, 1_000, 0) is seen[0]  # known, not run again
    with pytest.raises(BadInputError, match="cannot be made"):
        count_misses_concurrently([(SetWork("hash", "dram", 0, 50, "shm:"), CACHES, 100)], [0])


@needs_pools
def test_unwatchable_work_is_refused_as_by_the_benchmark() -> None:
    with pytest.raises(BadInputError, match="cannot be made"):
        count_misses(SetWork("hash", "dram", 0, 50, "shm:"), CACHES, 100, 0)


NS = 1e-9


def _costs(memory_ns: float = 100.0) -> HostCosts:
    def ns(value: float) -> Constant:
        return Constant(value * NS, value * NS, value * NS)

    return HostCosts("test", (ns(1), ns(4), ns(20)), ns(memory_ns), Walks(ns(0)), CACHES)


def _counts(misses: float, far: float = 0.0, fences: float = 0.0) -> OperationCounts:
    levels = (
        LevelCounts(20, misses, 0, 0, 0, 0),
        LevelCounts(misses, misses, 0, 0, 0, 0),
        LevelCounts(misses, misses, 0, 0, 0, 0),
    )
    return OperationCounts(
        1000,
        fences,
        fences,
        fences,
        fences,
        0.0,
        0.0,
        (CacheVariant("lru", False, 1, levels, far),),
    )


def _memory(load_ns: float, fence_ns: float = 0.0, sync_ns: float | None = None) -> Memory:
    def ns(value: float) -> Constant:
        return Constant(value * NS, value * NS, value * NS)

    return Memory("m", ns(load_ns), ns(fence_ns), ns(0), None if sync_ns is None else ns(sync_ns))


def _software(ns: float) -> Software:
    return Software(Constant(ns * NS, ns * NS, ns * NS), 20, 0.0)


def test_a_dependent_chain_pays_each_miss_in_full_and_others_overlap() -> None:
    seen = _counts(misses=1.0, far=1.0)
    chain = operation_time(Shape(seen, 0, True), _software(30), _costs(), _memory(300))
    assert chain.parts.total == pytest.approx((30 + 299) * NS)
    overlapped = operation_time(Shape(seen, 0), _software(30), _costs(), _memory(300))
    under_way = 1 + 25 / 30
    assert overlapped.overlap == pytest.approx(under_way)
    assert overlapped.parts.total == pytest.approx((30 + 299 / under_way) * NS)
    assert overlapped.low < overlapped.parts.total < overlapped.high


def test_misses_of_a_long_search_do_not_overlap() -> None:
    seen = _counts(misses=5.0, far=5.0)
    found = operation_time(Shape(seen, 0), _software(500), _costs(), _memory(300))
    assert found.parts.total > (500 + 0.9 * 5 * 299) * NS


def test_a_stream_costs_the_part_that_software_does_not_hide() -> None:
    lines = 1000
    level = LevelCounts(4 * lines, 0, 0, 0, lines, 0)
    seen = replace(_counts(0), variants=(CacheVariant("lru", False, 1, (level,) * 3, 0.0),))
    memory = replace(_memory(100), stream=Constant(3 * NS, 2 * NS, 5 * NS))

    def streams(software_ns: float) -> float:
        found = operation_time(Shape(seen, 0), _software(software_ns), _costs(), memory)
        return found.parts.streams

    assert streams(4 * lines) == 0
    assert streams(lines) == pytest.approx(2 * lines * NS)


def test_loads_hide_under_one_of_several_fences() -> None:
    def fences(count: float) -> float:
        shape = Shape(_counts(1, far=1, fences=count), 0, dependent=True)
        return operation_time(shape, _software(1), _costs(), _memory(1001, 90)).parts.fences

    assert fences(1) == pytest.approx(0)
    assert fences(10) == pytest.approx((9 * 90 - 9 * 0.1) * NS)


def test_setup_of_a_structure_counts_for_few_entries() -> None:
    host, near = _costs(), _memory(100, 150)

    def timed(entries: int) -> InCache:
        ns = 200 + 50_000 / entries
        return InCache(_software(ns).at, Shape(_counts(0), 0, True, entries), near)

    found = software_of([timed(n) for n in (250, 500, 2000, 4000)], host)
    for entries in (100, 1000, 100_000):
        assert found.of(20, entries).value == pytest.approx((200 + 50_000 / entries) * NS, rel=1e-3)


def test_a_hit_of_the_second_level_of_the_tlb_has_its_own_price() -> None:
    seen = replace(_counts(0), tlb_misses=3.0, walks=1.0)
    walks = Walks(_memory(30).load, second=_memory(2).load)
    assert walks.of_operation(seen, 0).value == pytest.approx((30 + 2 * 2) * NS)


def test_software_and_loads_run_on_under_a_fence() -> None:
    alone = operation_time(
        Shape(_counts(0, fences=1), 0), _software(10), _costs(), _memory(100, 90)
    )
    assert alone.parts.total == pytest.approx(90 * NS)  # 10 ns of software are hidden under it
    waits = operation_time(
        Shape(_counts(1, far=1, fences=1), 0), _software(10), _costs(), _memory(1001, 90)
    )
    assert waits.parts.fences == pytest.approx(0)


def test_on_a_disk_each_flush_is_an_msync_and_nothing_hides_it() -> None:
    found = operation_time(
        Shape(_counts(0, fences=0.5), 0), _software(10), _costs(), _memory(100, 0, 50_000)
    )
    assert found.parts.total == pytest.approx((10 + 25_000) * NS)


def test_software_in_cache_is_found_again() -> None:
    """The general form of known software yields it again, and its slope."""
    host, near = _costs(), _memory(100, 150)

    def timed(loads: float, ns: float) -> InCache:
        seen = replace(_counts(0.5, fences=0.25))
        first = replace(seen.variants[0].levels[0], loads=loads)
        variant = replace(seen.variants[0], levels=(first, *seen.variants[0].levels[1:]))
        shape = Shape(replace(seen, variants=(variant,)), 0)
        own = Software(Constant(ns * NS, ns * NS, ns * NS), loads, 0.0)
        time = operation_time(shape, own, host, near).parts.total
        return InCache(Constant(time, time, time), shape, near)

    found = software_of([timed(20, 40), timed(60, 80)], host)
    assert found.slope == pytest.approx(1 * NS, rel=1e-3)
    assert found.of(60).value == pytest.approx(80 * NS, rel=1e-3)
    assert found.of(100).value == pytest.approx(120 * NS, rel=1e-3)


def test_fences_of_all_devices_come_from_the_host() -> None:
    host = load_host("xeon-5317")
    near = near_memory(host, costs_of(host))
    slow = replace(near, fence=Constant(*(x + 150 * NS for x in vars(near.fence).values())))
    names = ("ddr5", "optane-100", "optane-100-lens", "cxl-asic", "pcm-lee", "ucy-optane")
    for device in map(load_profile, names):
        before, after = (far_memory(device, memory).fence for memory in (near, slow))
        for end in ("value", "low", "high"):
            assert getattr(after, end) == pytest.approx(getattr(before, end) + 150 * NS), (
                device.name
            )


def test_a_device_that_nearfar_measured_keeps_its_own_fence() -> None:
    host = load_host("xeon-5317")
    near = near_memory(host, costs_of(host))
    device = load_profile("optane-100")
    device.figures["flush_latency_ns"].origin = Origin.EMULATED
    assert far_memory(device, near).fence.value != pytest.approx(62 * NS)  # another machine
    assert far_memory(device, replace(near, measured=True)).fence.value == pytest.approx(62 * NS)


@pytest.mark.parametrize("fence_ns", [60, 90, 200, 400])
def test_a_hash_is_no_faster_on_slower_memory_whatever_the_host(fence_ns: float) -> None:
    host = load_host("xeon-5317")
    costs = costs_of(host)
    near = replace(near_memory(host, costs), fence=Constant(*(fence_ns * NS,) * 3))
    shape = Shape(_counts(0.5, far=0.5, fences=2), 0)

    def time(name: str) -> float:
        memory = far_memory(load_profile(name), near)
        return operation_time(shape, _software(100), costs, memory).parts.total

    rounding = 1 + 1e-9  # where all loads hide under the fences
    assert time("ddr5") <= time("cxl-asic") * rounding <= time("optane-100") * rounding**2
    for name in ("cxl-asic", "optane-100"):
        ddr5, far = (far_memory(load_profile(device), near) for device in ("ddr5", name))
        assert ddr5.line.value <= far.line.value
        assert ddr5.fence == far.fence or ddr5.fence.high < far.fence.high


def test_every_shipped_device_with_a_latency_can_be_priced() -> None:
    host = load_host("xeon-5317")
    near = near_memory(host, costs_of(host))
    for name in ("optane-100", "optane-200-4x128", "cxl-asic", "pcm-lee", "ddr5", "ucy-optane"):
        memory = far_memory(load_profile(name), near)
        assert memory.sync is None
        assert memory.fence.low <= memory.fence.value <= memory.fence.high
    slow = replace(near, fence=Constant(240 * NS, 230 * NS, 260 * NS))
    fence = far_memory(load_profile("optane-100"), slow).fence  # 90 ns on another host
    assert (fence.value, fence.low) == (slow.fence.value, slow.fence.low)
    assert fence.high > slow.fence.high
    disk = load_profile("ssd-s4600")
    assert is_disk(disk)
    memory = far_memory(disk, near)
    assert memory.sync is not None
    assert memory.sync.low == pytest.approx(36e-6)
    assert memory.load == near.load  # its pages are cached
    with pytest.raises(BadInputError, match="read_latency_ns"):
        far_memory(load_profile("oslo-nvdimm"), near)


def test_a_line_that_noise_hid_costs_nothing_rather_than_ending_the_verb() -> None:
    host = load_host("xeon-5317")
    line = next(iter(host.figures.values())).model_copy(
        update={"unit": "ns", "value": 0.0, "low": 0.0, "high": 7.0}
    )
    noisy = host.model_copy(update={"figures": {**host.figures, "near_flushed_line_ns": line}})
    memory = near_memory(noisy, costs_of(noisy))
    assert memory.line.value == 0
    assert memory.line.high == pytest.approx(7e-9)


def test_a_host_without_latencies_is_refused_by_name() -> None:
    with pytest.raises(BadInputError, match="snu-2014"):
        costs_of(load_host("snu-2014"))


def test_why_a_slowdown_differs_from_the_published_one() -> None:
    def why(
        low: float, high: float, *, same: bool = False, disk: bool = False, name: str = "hash"
    ) -> str:
        return slowdowns.reason(name, (low, high), 10.0, same_code=same, waits=1.5, disk=disk)

    assert why(9, 11) == "the interval holds the published mean"
    assert "1.5 fences" in why(1, 2)
    assert "about nine" in why(1, 2)
    assert "both sides" in why(1, 2, same=True)
    assert "1.5 msyncs" in why(1, 2, same=True, disk=True)
    assert "logging" in why(20, 30)
    assert "drive" not in why(20, 30)
    assert "drive" in why(20, 30, disk=True)
    assert "states neither" in why(1, 2, name="map_tx")
    assert "logging" not in why(20, 30, name="list_tx")


def test_a_slowdown_is_as_uncertain_as_the_software_that_it_is_against() -> None:
    """Next to an msync, whose time no software shares, a counterpart's range is the ratio's."""
    own = Software(Constant(20 * NS, 15 * NS, 30 * NS), 20, 0.0)
    pool, twin = Shape(_counts(0, fences=1), 0), Shape(_counts(0), 0)
    reported = structure_results.predict(
        structure_results.Case("hash", 100, 50, pool, own, twin, own),
        _costs(),
        _memory(100),
        _memory(100, 0, 10_000),
    )
    low, high = reported.intervals["slowdown"]
    assert low < 10_030 / 30 / 1.05
    assert high > 10_015 / 15 * 1.05
    assert low < reported.slowdown < high


@needs_pools
def test_predict_structure_reports_both_readings(run_nearfar: RunNearfar) -> None:
    done = run_nearfar(
        "predict",
        "structure",
        "--structure",
        "map_tx",
        "--far",
        "ssd-s4600",
        "--host",
        "xeon-5317",
        "--entries",
        "256",
        "--json",
        "-",
        "-q",
    )
    assert done.code == 0, done
    reported = json.loads(done.stdout)
    assert [r["baseline"] for r in reported["readings"]] == ["twin", "same_code"]
    assert reported["readings"][0]["published_slowdown"] == 274.8
    assert "msyncs" in reported["readings"][0]["reason"]
    low, high = reported["intervals"]["slowdown"]
    assert 1 < low <= reported["slowdown"] <= high
    assert reported["time_s"] > 1e-6
    assert any(t["name"] == "msyncs" and t["binds"] for t in reported["terms"])


def fix_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Software is measured, and then taken for a known one, as the host is."""
    software = calibrating.software

    def known_host(*_: Any) -> Host:
        return load_host("xeon-5317")

    def known_software(session: Session, cases: Sequence[Case], *rest: Any) -> dict[Case, Software]:
        return dict.fromkeys(software(session, cases, *rest), _software(60))

    monkeypatch.setattr(host_here, "host_for", known_host)
    monkeypatch.setattr(calibrating, "software", known_software)


@needs_pools
def test_a_study_predicts_points_then_measures_them_and_reports_each_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(structures_study, "ENTRIES", {"list": 64, "hash": 500})
    monkeypatch.setattr(structures_study, "MAP_ENTRIES", 500)
    fix_calibration(monkeypatch)
    cpus = sorted(os.sched_getaffinity(0))
    with open_session(silent) as session:
        result = structures_study.predict_structures(session, cpus, Effort(15.0, 1, apart=False))
    assert STUDY["structures"] > 0
    assert [p.tier for p in result.points] == ["shm:", "dram"] * 3
    for point in result.points:
        low, high = point.intervals["predicted_latency_ns"]
        assert point.covered == (low <= point.latency_ns <= high)
        assert point.relative_error == pytest.approx(
            point.predicted_latency_ns / point.latency_ns - 1
        )
    found = {(d.structure, d.device): d.slowdown for d in result.devices}
    assert found["hash", "ssd-s4600"] > 10 > found["hash", "optane-100"]
    assert ("hash", "oslo-nvdimm") not in found  # no latency
    run = factories.study(sections=Sections(structures=result))
    shown = section(Context(run))
    assert shown is not None
    assert f"{len(result.points)} points" in shown.finding
    assert len(shown.tables[-1].rows) == len(result.devices)
    readings = {(p.structure, p.device, p.baseline): p for p in result.published}
    assert len(readings) == 2 * 2 * 2  # two structures and devices, both readings of DRAM
    assert len(shown.tables[1].rows) == len(readings)
    optane = readings["hash", "optane-200-4x128", "twin"]
    assert optane.published_slowdown == 11.2
    assert optane.slowdown < 11.2
    assert "fences a change" in optane.reason
