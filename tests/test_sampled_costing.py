"""Costs of placements from stalls whose cause is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nearfar.place.kernel_time import first_touches_ns, with_observed_touches
from nearfar.place.memory_costs import Memory, PageWalk, memory_of
from nearfar.place.program_data import PARTS, Touched
from nearfar.place.sample_records import CLOCK, FAULT, SAMPLE_FIELDS
from nearfar.place.sampled_costing import CacheSizes, SampledCoster
from nearfar.place.sampled_sizes import PageFaults, pages_of
from nearfar.place.samples import ProgramSamples, Stalls
from nearfar.place.sites import Site
from nearfar.place.uncertainty import touch_ends
from nearfar.profiles import load_profile
from nearfar.records.profile import Figure

MIB = 1 << 20
NEAR = Memory("near", 100, 100, 100, 5, 5, PageWalk(), 12)
FAR = replace(NEAR, name="far", latency=300, low=300, high=300, line=20, write_line=20)
CACHES = CacheSizes(l2=MIB, llc=16 * MIB)


def stalls(site: int, bytes_: float, *, seconds: float, speed: float = 0.0) -> Stalls:
    count = 1000
    return Stalls(
        site=site,
        samples=count,
        stall_ns=seconds * 1e9,
        others_ns=0.0,
        spans=np.full(count, bytes_ / count),
        streamed_bytes=speed * seconds * 1e9 or None,
        loop=site,
        follows_pointer=not speed,
        is_store=False,
    )


def data(*groups: Stalls, touched: tuple[int, int] = (0, 0)) -> ProgramSamples:
    sites = tuple(Site(n, "heap", (), 1, MIB, MIB, 0, 0, 1.0) for n in range(2))
    return ProgramSamples(
        sites,
        np.ones((2, PARTS)),
        Touched(touched, (0, 0), 0),
        groups,
        {group.loop: group.stall_ns for group in groups if group.streamed_bytes},
        1e9,
        1000,
        500_000.0,
        0.0,
    )


def slowdown(found: ProgramSamples, far: Memory = FAR, sites: tuple[int, ...] = (0, 1)) -> float:
    coster = SampledCoster(found, NEAR, CACHES, cpu_s=1.0)
    near, placed = coster.costs(far, [[], sites])
    assert near.time_ns == 1e9
    return placed.time_ns / near.time_ns


def test_known_misses_take_the_ratio_of_latencies_however_small_the_region() -> None:
    """All of the time waits for 64 KiB that hardware saw come from memory."""
    known = replace(stalls(0, 64 << 10, seconds=1.0), from_memory=True)
    assert slowdown(data(known)) == pytest.approx(3.0, rel=0.05)


def test_the_interval_includes_that_data_at_unknown_addresses_lies_far() -> None:
    """A tenth of the time waits for known misses, and 40 % of the samples have no address."""
    seen = replace(data(stalls(0, 1 << 30, seconds=0.1)), unknown_share=0.4)
    known, far = SampledCoster(seen, NEAR, CACHES, cpu_s=1.0), [[0], []]
    ends = [max(variants) for variants in zip(*known.slowdowns(FAR, far), strict=True)]
    assert ends == pytest.approx([1.2 + 0.8, 1.0], rel=0.01)


def test_page_walks_overlap_unless_an_address_was_just_loaded() -> None:
    """Chases of 100 ns take 140 on small pages; loads that wait for no other take 110."""
    near = replace(NEAR, page_shift=21)
    small = replace(near, name="small", page_shift=12, walk=PageWalk(40, 10))
    for follows, longer in ((True, 1.4), (False, 1.1)):
        each = replace(stalls(0, 4096 * MIB, seconds=1.0), follows_pointer=follows)
        coster = SampledCoster(data(each), near, CACHES, cpu_s=1.0)
        assert coster.costs(small, [[0]])[0].time_ns == pytest.approx(longer * 1e9, rel=0.02)


def test_misses_in_a_row_take_the_ratio_of_latencies() -> None:
    """All of the time waits for a region far larger than the caches: 100 ns become 300."""
    assert slowdown(data(stalls(0, 4096 * MIB, seconds=1.0))) == pytest.approx(3.0, abs=0.05)


def test_hits_in_the_last_cache_lose_nothing() -> None:
    assert slowdown(data(stalls(0, 8 * MIB, seconds=1.0))) == pytest.approx(1.0)


def test_only_far_sites_cost() -> None:
    found = data(stalls(0, 4096 * MIB, seconds=0.5), stalls(1, 4096 * MIB, seconds=0.25))
    both, first, second = (slowdown(found, sites=sites) for sites in ((0, 1), (0,), (1,)))
    assert first > second > 1
    assert both == pytest.approx(first + second - 1)


def test_a_stream_is_bound_by_far_bandwidth_alone() -> None:
    """16 bytes a ns are a line every 4 ns; near memory delivers one in 5, far memory in 20."""
    fast = data(stalls(0, 4096 * MIB, seconds=1.0, speed=16.0))
    assert slowdown(fast) == pytest.approx(4.0, rel=0.02)
    slow = data(stalls(0, 4096 * MIB, seconds=1.0, speed=1.0))
    assert slowdown(slow) == pytest.approx(1.0)


def test_a_loop_over_two_arrays_in_turns_has_the_lines_of_one_stream() -> None:
    """Each array takes a half of the loop's time; two parallel instructions take all of it."""
    half = stalls(0, 4096 * MIB, seconds=0.5, speed=16.0)
    found = replace(data(half, replace(half, site=1)), loops_ns={0: 1e9})
    assert slowdown(found) == pytest.approx(4.0, rel=0.02)
    assert slowdown(found, sites=(0,)) == pytest.approx(2.5, rel=0.05)
    counted = SampledCoster(found, NEAR, CACHES, 1.0).counted()
    assert counted.sites[0].reads == pytest.approx(0.5e9 * 16 / 64, rel=0.01)


def test_first_touches_of_far_pages_cost_their_difference() -> None:
    far = replace(FAR, latency=100, touch=2000.0)
    found = data(stalls(0, 8 * MIB, seconds=0.5), touched=(100_000, 0))
    assert slowdown(found, far) == pytest.approx(1.2)


def test_walks_of_small_pages_cost_beyond_the_reach_of_the_tlb() -> None:
    near = replace(NEAR, page_shift=21)
    far = replace(NEAR, walk=PageWalk(50, 50))
    coster = SampledCoster(data(stalls(0, 1024 * MIB, seconds=1.0)), near, CACHES, 1.0)
    _, placed = coster.costs(far, [[], [0]])
    assert placed.time_ns / 1e9 == pytest.approx(1.5, abs=0.02)


def test_variants_surround_the_answer_and_fewer_samples_widen_it() -> None:
    many = data(stalls(0, 64 * MIB, seconds=0.5))
    few = data(replace(many.stalls[0], samples=20, spans=many.stalls[0].spans[:20] * 50))
    widths = []
    for found in (many, few):
        coster = SampledCoster(found, NEAR, CACHES, cpu_s=1.0)
        value = slowdown(found)
        ends = [variant[0] for variant in coster.slowdowns(FAR, [[0]])]
        assert min(ends) < value < max(ends)
        widths.append(max(ends) - min(ends))
    assert widths[1] > widths[0]


def test_slower_memory_saves_no_time_whatever_its_pages_cost() -> None:
    """Walks and first touches of a far memory without figures of its own are those of near memory:
    they are one uncertain figure, not two."""
    near = replace(NEAR, walk=PageWalk(20, 20), walk_ends=(PageWalk(5, 5), PageWalk(60, 60)))
    near = replace(near, touch=500.0, touch_low=100.0, touch_high=5000.0)
    found = data(stalls(0, 64 * MIB, seconds=0.5), touched=(16384, 0))
    coster = SampledCoster(found, near, CACHES, cpu_s=1.0)
    far = replace(near, name="far", latency=101, low=101, high=101)
    ends = [variant[0] for variant in coster.slowdowns(far, [[0]])]
    assert min(ends) >= 1
    assert touch_ends(near, far) == [(100, 100), (5000, 5000)]
    assert touch_ends(near, replace(far, page_shift=21)) == [(5000, 100), (100, 5000)]


def test_counts_of_sites_are_estimated_from_their_waits() -> None:
    coster = SampledCoster(data(stalls(0, 4096 * MIB, seconds=1.0)), NEAR, CACHES, 1.0)
    assert coster.counted().sites[0].reads == pytest.approx(1e7, rel=0.02)
    assert coster.counted().sites[1].reads == 0


@pytest.mark.parametrize(
    ("allocations", "large", "pages"),
    [(4, False, 100), (4, True, 8192), (4096, True, 4096)],
    ids=["small pages", "large blocks on large pages", "small blocks on large pages"],
)
def test_touched_pages_follow_from_sampled_faults(
    allocations: int, large: bool, pages: int
) -> None:
    """Blocks of 32 MiB in all, at most 16 MiB at a time; 100 faults, of which a tenth is seen."""
    site = Site(0, "heap", (), allocations, 32 * MIB, 16 * MIB, 0, 0, 1.0)
    sampled = np.zeros(10, np.int64), np.full(10, 10.0)
    assert pages_of([site], *sampled, PageFaults(100, are_large=large)) == [pages]


def test_first_touches_take_the_time_in_which_samples_are_missing_at_page_faults() -> None:
    """A fault between samples that are 5 ms apart takes 4.5 ms; gaps without a fault, and between
    two threads, do not count."""
    rows = [
        (1, 0, CLOCK),
        (1, 1, FAULT),
        (1, 10, CLOCK),
        (1, 20, CLOCK),
        (2, 0, FAULT),
        (2, 1, CLOCK),
    ]
    samples = np.zeros(len(rows), SAMPLE_FIELDS)
    samples["thread"], times, samples["kind"] = np.array(rows).T
    samples["time_ns"] = times * 500_000
    assert first_touches_ns(samples, 500_000, system_s=1.0) == 4_500_000
    assert first_touches_ns(samples, 500_000, system_s=0.001) == 1_000_000
    assert first_touches_ns(samples, 500_000, system_s=1.0, share=0.5) == 9_000_000


def test_slow_first_touches_near_are_saved_far() -> None:
    """100 large pages took 2 ms each near, where the host says 0.1 ms."""
    near = replace(NEAR, page_shift=21, touch=1e5, touch_low=1e5, touch_high=2e5)
    touched = Touched((51_200, 0), (100, 0), 0)
    seen = with_observed_touches(near, touched, 200e6)
    assert (seen.touch, seen.touch_low, seen.touch_high) == (2e6, 1e5, 2e6)
    assert with_observed_touches(NEAR, touched, 200e6) == NEAR
    found = replace(data(stalls(0, 8 * MIB, seconds=0.5)), touched=touched)
    coster = SampledCoster(found, seen, CACHES, cpu_s=1.0)
    far = replace(FAR, latency=100, touch=500.0)
    assert coster.costs(far, [[0]])[0].time_ns == pytest.approx(1e9 - 200e6 + 51_200 * 500.0)


@pytest.mark.parametrize("everywhere", [False, True])
def test_mapped_memory_has_first_touches_where_large_pages_are_everywhere(everywhere: bool) -> None:
    touched = Touched((51_200, 0), (100, 0), 0, everywhere_large=everywhere)
    made = replace(data(stalls(0, MIB, seconds=0.5)), touched=touched)
    made = replace(made, sites=tuple(replace(site, kind="mapping") for site in made.sites))
    added_ns = 51_200 * 500.0 - 100 * 1e5
    assert made.first_touches_ns(0, (1e5, True), (500.0, False)) == (added_ns if everywhere else 0)


def placed(near: Memory, found: ProgramSamples) -> tuple[float, float]:
    """CPU times in s with all near and all far, of samples that were taken on NEAR."""
    coster = SampledCoster(found, near, CACHES, cpu_s=1.0, run_memory=NEAR)
    all_near, all_far = coster.costs(FAR, [[], [0, 1]])
    assert coster.near_time_ns() == all_near.time_ns
    return all_near.time_ns / 1e9, all_far.time_ns / 1e9


def test_a_near_memory_as_fast_as_the_one_here_gives_the_same_answer() -> None:
    found = data(stalls(0, 4096 * MIB, seconds=0.5), touched=(1000, 0))
    same = replace(NEAR, name="same")
    assert placed(same, found) == pytest.approx((1.0, slowdown(found)))
    run_memory = SampledCoster(found, NEAR, CACHES, cpu_s=1.0)
    other = SampledCoster(found, same, CACHES, cpu_s=1.0, run_memory=NEAR)
    assert other.slowdowns(FAR, [[0]])[-1] == pytest.approx(run_memory.slowdowns(FAR, [[0]])[-1])


def test_stalls_are_converted_to_a_faster_near_memory() -> None:
    """Half a second of waits takes 1.5 s in far memory, and 0.4 s in a near memory of 80 ns: the
    loss is in proportion to the difference of latencies, however fast the memory here is."""
    found = data(stalls(0, 4096 * MIB, seconds=0.5))
    fast = replace(NEAR, name="fast", latency=80, low=80, high=80)
    near_s, far_s = placed(fast, found)
    here_s, far_here_s = placed(NEAR, found)
    assert near_s == pytest.approx(0.9, rel=0.01)
    assert far_s == pytest.approx(far_here_s)
    assert (far_s - near_s) / (far_here_s - here_s) == pytest.approx(220 / 200, rel=0.01)


def test_walks_and_streams_are_converted_too() -> None:
    walked = replace(NEAR, walk=PageWalk(50, 50))
    found = data(stalls(0, 1024 * MIB, seconds=1.0))
    coster = SampledCoster(found, walked, CACHES, cpu_s=1.0, run_memory=NEAR)
    assert coster.near_time_ns() == pytest.approx(1.5e9, rel=0.02)
    fast = data(stalls(0, 4096 * MIB, seconds=1.0, speed=16.0))
    narrow = replace(NEAR, line=10, write_line=10)
    near_s, far_s = placed(narrow, fast)
    assert (near_s, far_s) == pytest.approx((2.0, 4.0), rel=0.02)


def test_a_thread_has_no_more_lines_in_flight_on_another_memory() -> None:
    """The bandwidth of all threads of a profile is not that of one thread."""
    figures = {"read_latency_ns": 50.0, "read_bandwidth_bytes_per_s": 400e9}
    units = {"read_latency_ns": "ns", "read_bandwidth_bytes_per_s": "B/s"}
    device = load_profile("ddr4")
    made = {
        key: Figure(unit=units[key], value=value, source="tests", confidence="C")
        for key, value in figures.items()
    }
    run_memory = replace(NEAR, walk=PageWalk(7, 3), touch=500.0)
    found = memory_of(device.model_copy(update={"figures": made}), run_memory)
    assert (found.latency, found.line) == (50, 2.5)  # half of the latency here, 5 ns a line
    assert found.capped
    assert (found.walk, found.touch) == (PageWalk(7, 3), 500)
