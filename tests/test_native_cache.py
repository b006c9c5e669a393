"""The cache layer as Python sees it."""

from __future__ import annotations

import numpy as np
import pytest

from nearfar._native import CacheHierarchy, NativeError, layer_condition_factor, replay_map


def u8(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint8)


def test_a_hierarchy_counts() -> None:
    caches = CacheHierarchy([(1024, 2), (4096, 4)], None, 64, "lru", 1)
    addresses = np.array([0, 8, 64, 4096, 0], dtype=np.uint64)
    caches.access(addresses, u8(8, 8, 8, 8, 8), u8(0, 1, 2, 0, 0))
    first, second = caches.counters()
    assert (first["loads"], first["stores"]) == (4, 1)
    assert (first["load_misses"], first["store_misses"]) == (3, 0)
    assert second["loads"] == 3


@pytest.mark.parametrize(
    ("sizes", "kinds"), [(u8(8), u8(4)), (u8(0), u8(0)), (u8(65), u8(0)), (u8(8, 8), u8(0))]
)
def test_accesses_that_make_no_sense_are_refused(sizes: np.ndarray, kinds: np.ndarray) -> None:
    caches = CacheHierarchy([(1024, 2)], None, 64, "lru", 1)
    with pytest.raises(NativeError, match="bad_input"):
        caches.access(np.array([0], dtype=np.uint64), sizes, kinds)
    assert caches.counters()[0]["loads"] == 0


def test_shapes_policies_and_operations_are_refused() -> None:
    with pytest.raises(NativeError, match="unknown replacement policy"):
        CacheHierarchy([(1024, 2)], None, 64, "plru", 1)
    with pytest.raises(NativeError, match="at least one level"):
        CacheHierarchy([], None, 64, "lru", 1)
    with pytest.raises(NativeError, match="bad_input"):
        layer_condition_factor(1, 8, 1 << 20, 16, "lru", False, 1)
    with pytest.raises(NativeError, match="unknown map operation"):
        replay_map("put", 10, 1, 64, (1 << 20, 16), [("lru", True)], 1)
