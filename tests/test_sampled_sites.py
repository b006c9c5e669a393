"""Sites of samples: call chains, mappings, regions that only the kernel names, and their parts."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from fixed_samplers import PROGRAM, FixedSampler, SamplerOfAProgram, place, samples
from nearfar._native import Sampler
from nearfar.place.block_sizes import SizeClass, parts_by_size
from nearfar.place.held_data import HeldData, Resident, held_data
from nearfar.place.mapping_parts import Touches, part_at, parts_of
from nearfar.place.regions import Regions, SampledRegion
from nearfar.place.sample_records import CLOCK, FAULT
from nearfar.place.sampled_sizes import PageFaults
from nearfar.place.samples import read_samples

MIB = 1 << 20
HEAP, ARENA, REGION = 0x10_0000_0000, 0x20_0000_0000, 0x30_0000_0000
GLOBALS, FILE = 0x40_0000_0000, 0x50_0000_0000


def held(
    sampler: FixedSampler, seen: np.ndarray, resident: Resident | None = None, faults: int = 0
) -> HeldData:
    return held_data(cast("Sampler", sampler), seen, PageFaults(faults), resident)


def spread(begin: int, size: int, count: int, seed: int = 1) -> np.ndarray:
    return begin + np.random.default_rng(seed).integers(0, size, count).astype(np.uint64)


def pages(begin: int, size: int) -> np.ndarray:
    return np.arange(begin, begin + size, 4096, dtype=np.uint64)


def test_mappings_of_one_call_site_are_one_site_with_the_memory_that_was_touched() -> None:
    chain = ((1, 0x500), (1, 0x600))
    data = [
        place("mapping", *chain, allocations=2, allocated_bytes=64 * MIB, peak_bytes=64 * MIB),
        place("mapping", *chain, begin=ARENA, bytes=32 * MIB),
        place("mapping", *chain, begin=ARENA + 64 * MIB, bytes=32 * MIB),
    ]
    seen = samples(
        (CLOCK, spread(ARENA, 4 * MIB, 500), 2),
        (CLOCK, spread(ARENA + 64 * MIB, 4 * MIB, 500), 3),
        (FAULT, pages(ARENA, 4 * MIB), 2),
        (FAULT, pages(ARENA + 64 * MIB, 4 * MIB), 3),
    )
    found = held(FixedSampler(data, []), seen, faults=2048)
    sites = [site for site in found.sites if site.kind == "mapping"]
    assert [site.number for site in sites] == list(np.unique(found.numbers))
    (site,) = sites
    assert site.is_movable()
    assert site.allocations == 2
    assert site.peak_bytes == pytest.approx(8 * MIB)
    assert found.sizes[site.number].max() == pytest.approx(8 * MIB)


@pytest.mark.parametrize("step", [2 * MIB, 4096], ids=["huge", "small"])
def test_a_fault_brings_in_a_huge_page_where_the_kernel_prefers_them(step: int) -> None:
    """An eighth of the faults was sampled. Huge pages do not fit the second mapping."""
    data = [
        place("mapping", (1, 0x500), begin=ARENA, bytes=64 * MIB),
        place("mapping", (1, 0x900), begin=GLOBALS, bytes=MIB),
        place("mapping"),
    ]
    large = np.arange(ARENA, ARENA + 64 * MIB, step, dtype=np.uint64)[::8]
    small = pages(GLOBALS, MIB)[::8]
    logged = samples((FAULT, large, 1), (FAULT, small, 2))
    seen = np.concatenate([logged, samples((FAULT, large, 3), process=8)])
    sampler = cast("Sampler", FixedSampler(data, [(8, ARENA, ARENA + 64 * MIB, "")]))
    found = held_data(sampler, seen, PageFaults(8 * len(seen), everywhere_large=True))
    sizes = [site.peak_bytes for site in found.sites if site.kind == "mapping"]
    assert sorted(size for size in sizes if size) == [MIB, 64 * MIB, 64 * MIB]


def test_a_large_mapping_is_divided_where_samples_are_denser() -> None:
    data = [place("mapping", (1, 0x500), begin=ARENA, bytes=64 * MIB)]
    seen = samples(
        (CLOCK, spread(ARENA + 16 * MIB, 8 * MIB, 4000), 1),
        (CLOCK, spread(ARENA, 64 * MIB, 400, seed=2), 1),
        (FAULT, pages(ARENA, 64 * MIB), 1),
    )
    found = held(FixedSampler(data, []), seen, faults=16384)
    parts = {site.part: site for site in found.sites if site.kind == "mapping"}
    assert list(parts) == [(0, 16 * MIB), (16 * MIB, 24 * MIB), (24 * MIB, None)]
    hot = parts[16 * MIB, 24 * MIB]
    assert hot.peak_bytes == pytest.approx(8 * MIB)
    offsets = (seen["address"] - ARENA).astype(np.int64)
    inside = (offsets >= 16 * MIB) & (offsets < 24 * MIB)
    assert (found.numbers[inside] == hot.number).all()
    assert (found.numbers[~inside] != hot.number).all()
    sampler = cast("Sampler", FixedSampler(data, []))
    whole = held_data(sampler, seen, PageFaults(16384), whole_sites=True)
    assert [site.part for site in whole.sites if site.kind == "mapping"] == [None]


def test_regions_of_a_process_with_a_log_have_no_name_if_no_sample_is_in_its_heap() -> None:
    data = [place("heap", (1, 0x500), allocations=1, allocated_bytes=MIB), place("mapping")]
    seen = samples((CLOCK, spread(REGION, 4 * MIB, 50), 2), (FAULT, pages(REGION, 4 * MIB), 2))
    sampler = FixedSampler(data, [(7, REGION, REGION + 4 * MIB, "")])
    assert not any(site.selector for site in held(sampler, seen, faults=1024).sites)


def test_memory_of_a_process_without_a_log_is_named_by_region() -> None:
    data = [place("mapping"), place("mapping", name="[heap]"), place("mapping", name="[vvar]")]
    regions: list[tuple[int, int, int, str]] = [
        (7, HEAP, HEAP + 4 * MIB, "[heap]"),
        (7, REGION, REGION + 100 * MIB, ""),
        (7, ARENA, ARENA + 3 * MIB, "[anon:pool]"),
        (7, GLOBALS, GLOBALS + 4096, "[vvar]"),
        (7, FILE, FILE + 8 * MIB, "/dev/zero (deleted)"),
    ]
    seen = samples(
        (CLOCK, spread(REGION, 100 * MIB, 50), 1),
        (CLOCK, spread(HEAP, 4 * MIB, 50), 2),
        (CLOCK, spread(GLOBALS, 4096, 5), 3),
    )
    chunks = np.array([HEAP, REGION, REGION + 50 * MIB, ARENA, FILE], np.uint64)
    in_memory = Resident(np.full(5, 7, np.int32), chunks, np.array([512.0, 512, 512, 300, 2048]))
    found = held(FixedSampler(data, regions), seen, in_memory)
    named = {site.selector: site for site in found.sites if site.is_movable()}
    assert {selector: site.peak_bytes for selector, site in named.items()} == {
        "map=anonymous size=67108864..268435455": 4 * MIB,
        "map=heap": 2 * MIB,
        "map=name:pool": 300 * 4096,
        "map=file:zero": 8 * MIB,
    }
    of_region = seen["address"] >= REGION
    of_region &= seen["address"] < GLOBALS
    assert set(found.numbers[of_region]) == {named["map=anonymous size=67108864..268435455"].number}


def test_globals_of_a_running_process_have_their_own_pages() -> None:
    """Those of zeroed data are anonymous memory next to the heap."""
    data = [place("statics", (1, 0), begin=GLOBALS, bytes=8 * MIB), place("mapping", name="[heap]")]
    regions: list[tuple[int, int, int, str]] = [
        (7, GLOBALS, GLOBALS + 8 * MIB, "/bin/program"),
        (7, GLOBALS + 8 * MIB, GLOBALS + 16 * MIB, "[heap]"),
    ]
    seen = samples((CLOCK, spread(GLOBALS, 8 * MIB, 50), 1))
    chunks = np.array([GLOBALS, GLOBALS + 8 * MIB], np.uint64)
    in_memory = Resident(np.full(2, 7, np.int32), chunks, np.array([1024.0, 512]))
    found = held(FixedSampler(data, regions), seen, in_memory)
    assert {site.selector: site.peak_bytes for site in found.sites if site.is_movable()} == {
        f"globals={PROGRAM[1]}": 4 * MIB,
        "map=heap": 2 * MIB,
    }


def test_memory_that_processes_share_counts_once() -> None:
    path = "/dev/zero (deleted)"
    regions = [(pid, FILE, FILE + 8 * MIB, path) for pid in (7, 8, 9)]
    chunks = np.array([FILE, FILE, FILE + 4 * MIB], np.uint64)
    in_memory = Resident(np.array([7, 8, 9], np.int32), chunks, np.array([512.0, 1024, 512]))
    seen = samples((CLOCK, spread(FILE, 8 * MIB, 50), 1))
    found = held(FixedSampler([place("mapping", (2, 0))], regions), seen, in_memory)
    assert {site.selector: site.peak_bytes for site in found.sites if site.is_movable()} == {
        "map=file:zero": 6 * MIB
    }


def test_what_is_left_over_in_a_process_with_a_log_is_not_placed() -> None:
    data = [place("mapping"), place("heap", (1, 0x500), allocations=3, allocated_bytes=MIB)]
    seen = samples(
        (CLOCK, spread(REGION, 100 * MIB, 50), 1),
        (CLOCK, spread(HEAP, MIB, 5), 2),
        (FAULT, pages(REGION, 8 * MIB), 1),
    )
    found = held(FixedSampler(data, [(7, REGION, REGION + 100 * MIB, "")]), seen, faults=2048)
    assert [site.kind for site in found.sites if site.is_movable()] == ["heap"]
    assert found.touched.fixed_pages == 2048


def test_pages_of_the_allocation_log_are_no_memory_of_the_program() -> None:
    data = [place("mapping"), place("heap", (1, 0x500), allocations=3, allocated_bytes=MIB)]
    seen = samples(
        (CLOCK, spread(HEAP, MIB, 5), 2),
        (FAULT, pages(FILE, 8 * MIB), 0),  # the log has no place
        (FAULT, pages(REGION, 2 * MIB), 1),
    )
    found = held(FixedSampler(data, []), seen, faults=2560)
    assert found.touched.fixed_pages == 512
    assert sum(found.touched.small) == 512


def test_peaks_at_different_times_are_not_added() -> None:
    """The bytes that are live at the end do not say when most were."""
    seen = samples((CLOCK, spread(HEAP, MIB, 128), 1))
    data = [
        place("heap", (1, 0x500), peak_bytes=8 * MIB, held=[(10, 6 * MIB), (40, 0)]),
        place("heap", (1, 0x600), peak_bytes=4 * MIB, held=[(60, 3 * MIB), (100, 0)]),
        place("heap", (1, 0x700), peak_bytes=2 * MIB, held=[(110, 0)]),  # never seen alive
    ]
    for each in data:
        each |= {"allocations": 1, "allocated_bytes": each["peak_bytes"]}
    found = held(FixedSampler(data, []), seen)
    sizes = [found.sizes[site.number] for site in found.sites if site.kind == "heap"]
    assert [each.max() for each in sizes] == [8 * MIB, 4 * MIB, 2 * MIB]
    assert sum(sizes).max() == 8 * MIB


def test_blocks_of_a_call_are_divided_by_size_where_their_stalls_differ() -> None:
    """A page cache, apart from a sorter's buffer that began with fewer bytes; small ones join."""
    sizes = {64: MIB // 2, 4096: 64 * MIB, 4352: 96 * MIB, 8192: MIB // 2}
    data = [
        place("heap", (1, 0x500), least_bytes=least, peak_bytes=live, allocations=1)
        for least, live in sizes.items()
    ]
    seen = samples(
        (CLOCK, spread(HEAP, MIB, 40), 2),
        (CLOCK, spread(HEAP, MIB, 400), 3),
        (CLOCK, spread(HEAP, MIB, 4), 4),
    )
    sampler = cast("Sampler", FixedSampler(data, []))
    found = held_data(sampler, seen, PageFaults(0))
    heap = {site.block_sizes: site for site in found.sites if site.kind == "heap"}
    assert {sizes: site.peak_bytes for sizes, site in heap.items()} == {
        (0, 4351): 64 * MIB + MIB // 2,
        (4352, None): 96 * MIB + MIB // 2,
    }
    assert (found.numbers == heap[4352, None].number).sum() == 404
    whole = held_data(sampler, seen, PageFaults(0), whole_sites=True)
    assert [site.block_sizes for site in whole.sites if site.kind == "heap"] == [None]


def test_blocks_with_equally_dense_stalls_are_one_site() -> None:
    assert parts_by_size([SizeClass(4096, 200, 32 * MIB), SizeClass(8192, 210, 32 * MIB)]) == [
        (0, None)
    ]
    assert parts_by_size([SizeClass(4096, 5, 32 * MIB), SizeClass(8192, 50, 32 * MIB)]) == [
        (0, None)  # too few samples
    ]


def test_globals_and_mapped_files_are_named_by_their_file() -> None:
    data = [
        place("statics", (1, 0), begin=GLOBALS, bytes=4 * MIB),
        place("mapping", (2, 0)),
        place("statics", (1, 0)),  # constants
    ]
    seen = samples(
        (CLOCK, spread(GLOBALS, 4 * MIB, 20), 1),
        (CLOCK, spread(REGION, 4 * MIB, 20), 2),
        (FAULT, pages(GLOBALS, 4 * MIB), 1),
        (FAULT, pages(REGION, 2 * MIB), 2),
        (FAULT, pages(HEAP, 2 * MIB), 3),
    )
    found = held(FixedSampler(data, []), seen, faults=2048)
    assert {site.selector: site.peak_bytes for site in found.sites if site.is_movable()} == {
        f"globals={PROGRAM[1]}": 4 * MIB,
        "map=file:shared": 2 * MIB,
    }


def test_regions_are_found_by_process_and_address() -> None:
    regions = Regions(
        [
            SampledRegion(2, 100, 200, ""),
            SampledRegion(1, 100, 150, ""),
            SampledRegion(2, 300, 400, ""),
        ]
    )
    processes = np.array([1, 1, 2, 2, 2, 3], np.int32)
    addresses = np.array([149, 150, 150, 250, 300, 120], np.uint64)
    found = [
        (regions.all[i].process, regions.all[i].begin) if i >= 0 else None
        for i in regions.find(processes, addresses)
    ]
    assert found == [(1, 100), None, (2, 100), None, (2, 300), None]


def test_classes_of_size_are_a_factor_of_four_wide_and_do_not_overlap() -> None:
    selectors = [SampledRegion(1, 0, size, "").selector() for size in (MIB, 4 * MIB - 1, 4 * MIB)]
    assert selectors[0] == selectors[1] == "map=anonymous size=1048576..4194303"
    assert selectors[2] == "map=anonymous size=4194304..16777215"


def test_few_samples_and_small_mappings_are_not_divided() -> None:
    offsets = np.zeros(10_000, np.int64)
    small = Touches(np.arange(0, MIB, 4096), np.ones(256))
    assert parts_of(offsets, small) == [(0, None)]
    large = Touches(np.arange(0, 64 * MIB, 4096), np.ones(16384))
    assert parts_of(offsets[:50], large) == [(0, None)]
    assert len(parts_of(offsets, large)) == 2


def test_the_part_of_an_offset() -> None:
    assert part_at([(0, 10), (10, 30), (30, None)], np.array([0, 9, 10, 29, 500])).tolist() == [
        0,
        0,
        1,
        1,
        2,
    ]


@pytest.mark.parametrize(
    ("blocks", "held_bytes"), [(1, 8 * MIB), (1000, 128 * MIB)], ids=["large", "small"]
)
def test_of_a_large_block_only_pages_that_were_touched_count(blocks: int, held_bytes: int) -> None:
    """Of 128 MiB, 8 MiB were touched. Small blocks may be on pages that others touched first."""
    total = {"allocations": blocks, "allocated_bytes": 128 * MIB, "peak_bytes": 128 * MIB}
    data = [
        place("heap", (1, 0x500), begin=ARENA, bytes=128 * MIB),
        place("heap", (1, 0x500), **total),
    ]
    seen = samples((CLOCK, spread(ARENA, 8 * MIB, 500), 1), (FAULT, pages(ARENA, 8 * MIB), 1))
    found = held(FixedSampler(data, []), seen, faults=2048)
    (site,) = [site for site in found.sites if site.kind == "heap"]
    assert found.sizes[site.number].max() == pytest.approx(held_bytes)


def test_a_stream_next_to_the_code_of_a_long_chase_passes_what_it_passes() -> None:
    """A hundredth of the time streams through 8 MiB, 32 bytes of code after a random chase."""
    count, period = 2000, 100_000
    data = [place("heap", (1, k), begin=at, bytes=64 * MIB) for k, at in ((5, HEAP), (6, ARENA))]
    seen = samples(
        (CLOCK, spread(HEAP, 64 * MIB, count - 20), 1),
        (CLOCK, ARENA + np.arange(20, dtype=np.uint64) * (8 * MIB // 20), 2),
    )
    seen["time_ns"] *= period
    seen["time_ns"][-20:] += np.uint64((count - 20) * period)
    seen["code"][-20:] = 1
    sampler = cast("Sampler", SamplerOfAProgram(data, seen, [0x100, 0x120]))
    found = read_samples(sampler, count * period / 1e9, period, PageFaults(0))
    (stream,) = [each for each in found.stalls if each.streamed_bytes]
    assert stream.streamed_bytes == pytest.approx(8 * MIB, rel=0.1)
    assert found.loops_ns == {stream.loop: pytest.approx(20 * period, rel=0.1)}


@pytest.mark.parametrize("stores", [0, 0x118], ids=["loads", "one store"])
def test_bytes_that_places_of_a_loop_pass_together_count_once(stores: int) -> None:
    """Four instructions walk through one array, each a line ahead of the one before."""
    count, period = 2000, 100_000
    data = [place("heap", (1, 5), begin=HEAP, bytes=256 * MIB)]
    begin = HEAP + np.arange(count, dtype=np.uint64) * (256 * MIB // count)
    seen = samples((CLOCK, begin + np.arange(count, dtype=np.uint64) % 4 * 64, 1))
    seen["time_ns"] *= period
    seen["code"] = np.arange(count) % 4
    code = [0x100, 0x108, 0x110, 0x118]
    sampler = cast("Sampler", SamplerOfAProgram(data, seen, code, stores))
    found = read_samples(sampler, count * period / 1e9, period, PageFaults(0))
    streamed = [each.streamed_bytes or 0.0 for each in found.stalls]
    assert sum(streamed) == pytest.approx(256 * MIB, rel=0.01)
    of_stores = [each.streamed_bytes for each in found.stalls if each.is_store]
    assert of_stores == ([pytest.approx(256 * MIB, rel=0.01)] if stores else [])
