"""Memory of running processes that comes and goes while they are sampled."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from nearfar._native import Sampler
from nearfar.place.held_data import Resident
from nearfar.place.regions import SampledRegion
from nearfar.sampling import residency
from nearfar.sampling.residency import Residency

MIB = 1 << 20
HEAP, QUERY = 16 * MIB, 512 * MIB


class Maps:
    """Stands for a sampler: the regions of now, all of whose pages are in memory."""

    def __init__(self) -> None:
        self.now: list[tuple[int, int, int, str]] = []

    def regions(self) -> list[tuple[int, int, int, bytes]]:
        return [(process, begin, end, name.encode()) for process, begin, end, name in self.now]


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
    assert (len(found.regions), found.gone_bytes) == (1, 0)


def test_addresses_that_are_used_again_belong_to_the_last_region(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = [(7, QUERY + n * 16 * MIB, QUERY + (n + 1) * 16 * MIB, "") for n in range(4)]
    new = [(7, QUERY + 8 * MIB, QUERY + 40 * MIB, "")]
    other = [(8, QUERY, QUERY + 16 * MIB, "")]  # of another process
    found = seen(monkeypatch, old, new + other)
    assert {(region.process, region.begin) for region in found.regions} == {
        (7, QUERY + 8 * MIB),
        (7, QUERY + 48 * MIB),
        (8, QUERY),
    }
    assert found.gone_bytes == 16 * MIB
