"""Memory of running processes that comes and goes while they are sampled."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from nearfar._native import Sampler
from nearfar.place.held_data import Resident
from nearfar.place.regions import Regions, SampledRegion
from nearfar.sampling import residency
from nearfar.sampling.residency import Residency

MIB = 1 << 20
HEAP, QUERY = 16 * MIB, 512 * MIB


class Maps:
    """Stands for a sampler: the regions of now, all of whose pages are in memory."""

    def __init__(self) -> None:
        self.now: list[tuple[int, int, int, str]] = []

    def regions(self) -> list[tuple[int, int, int, bytes, bool]]:
        return [
            (process, begin, end, name.encode(), False) for process, begin, end, name in self.now
        ]


def all_pages(region: SampledRegion) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    chunks = np.arange(region.begin, region.end, 16 * 4096, dtype=np.uint64)
    return chunks, np.full(len(chunks), 16.0)


def seen(monkeypatch: pytest.MonkeyPatch, *looks: list[tuple[int, int, int, str]]) -> Resident:
    monkeypatch.setattr(residency, "_pages_of", all_pages)
    maps, watch = Maps(), Residency()
    for maps.now in looks:
        watch.look(cast("Sampler", maps))
    return watch.resident()


def test_memory_that_is_gone_at_the_end_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    heap = (7, HEAP, HEAP + 4 * MIB, "[heap]")
    query = (7, QUERY, QUERY + 64 * MIB, "")
    found = seen(monkeypatch, [heap], [heap, query], [heap])
    assert found.pages.sum() * 4096 == 68 * MIB
    assert found.gone_bytes == 64 * MIB
    assert {region.begin for region in found.regions} == {HEAP, QUERY}


def test_a_region_counts_once_with_its_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = [[(7, HEAP, HEAP + size * MIB, "[heap]")] for size in (1, 8, 2)]
    found = seen(monkeypatch, *grown)
    assert found.pages.sum() * 4096 == 8 * MIB
    assert {region.name for region in found.regions} == {"[heap]"}
    assert found.gone_bytes == 6 * MIB


def bytes_by_region(found: Resident) -> dict[tuple[int, int], int]:
    """Bytes in memory of each region, as the advice finds them by their addresses."""
    regions = Regions(found.regions)
    numbers = regions.find(found.processes, found.addresses)
    assert (numbers >= 0).all()
    return {
        (region.begin, region.end): round(found.pages[numbers == number].sum()) * 4096
        for number, region in enumerate(regions.all)
    }


def mib(begin: int, end: int, name: str = "") -> tuple[int, int, int, str]:
    """A region by its offsets from QUERY in MiB."""
    return 7, QUERY + begin * MIB, QUERY + end * MIB, name


def test_a_region_that_splits_keeps_no_pages_of_its_neighbor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = seen(monkeypatch, [mib(0, 20)], [mib(0, 8), mib(12, 20)])
    assert (
        bytes_by_region(found)
        == {
            mib(0, 8)[1:3]: 8 * MIB,
            mib(8, 12)[1:3]: 4 * MIB,  # which is gone
            mib(12, 20)[1:3]: 8 * MIB,
        }
    )
    assert found.gone_bytes == 4 * MIB


def test_regions_that_join_count_once_as_they_were_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_memory = {1: [(0, 8), (8, 16)], 2: [(0, 8)], 3: [(8, 16)]}

    def some_pages(region: SampledRegion) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        chunks, counts = all_pages(region)
        offsets = (chunks - np.uint64(QUERY)).astype(np.int64) // MIB
        held = [(offsets >= a) & (offsets < b) for a, b in in_memory[watch._looks]]
        kept = np.logical_or.reduce(held)
        return chunks[kept], counts[kept]

    monkeypatch.setattr(residency, "_pages_of", some_pages)
    maps, watch = Maps(), Residency()
    for maps.now in ([mib(0, 8), mib(8, 16)], [mib(0, 16)], [mib(0, 16)]):
        watch.look(cast("Sampler", maps))
    found = watch.resident()
    assert bytes_by_region(found) == {mib(0, 16)[1:3]: 16 * MIB}
    in_memory |= {2: [(8, 16)], 1: [(0, 8)]}  # never both: the halves of a heap that moves
    maps, watch = Maps(), Residency()
    for maps.now in ([mib(0, 8), mib(8, 16)], [mib(0, 8), mib(8, 16)], [mib(0, 16)]):
        watch.look(cast("Sampler", maps))
    assert bytes_by_region(watch.resident()) == {mib(0, 16)[1:3]: 8 * MIB}


def test_a_region_that_grows_downward_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    found = seen(monkeypatch, [mib(8, 16)], [mib(4, 16)], [mib(0, 4)])
    assert bytes_by_region(found) == {mib(0, 4)[1:3]: 4 * MIB, mib(4, 16)[1:3]: 12 * MIB}
    assert found.gone_bytes == 12 * MIB


def test_neighbors_of_another_name_are_not_the_same_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = seen(monkeypatch, [mib(0, 8, "[heap]"), mib(8, 12)], [mib(0, 4, "[heap]"), mib(4, 12)])
    assert bytes_by_region(found) == {mib(0, 4)[1:3]: 4 * MIB, mib(4, 12)[1:3]: 8 * MIB}


def test_addresses_that_are_used_again_belong_to_the_last_region(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = [(7, QUERY + n * 16 * MIB, QUERY + (n + 1) * 16 * MIB, "") for n in range(4)]
    new = [(7, QUERY + 8 * MIB, QUERY + 40 * MIB, "")]
    other = [(8, QUERY, QUERY + 16 * MIB, "")]  # of another process
    found = seen(monkeypatch, old, new + other)
    assert {(region.process, region.begin) for region in found.regions} == {
        (7, QUERY),  # the part that is gone
        (7, QUERY + 8 * MIB),
        (7, QUERY + 40 * MIB),  # so is this, and the region behind it
        (7, QUERY + 48 * MIB),
        (8, QUERY),
    }
    assert found.pages.sum() * 4096 == (64 + 16) * MIB
    assert found.gone_bytes == 32 * MIB
