"""The nodes of near and far memory, by their names."""

from __future__ import annotations

import pytest

from nearfar.workflows import advice_loads


@pytest.mark.parametrize(
    ("near", "far", "nodes"),
    [
        ("dram", "numa:1", (0, 1)),
        ("numa:1", "dram", (1, 0)),
        ("dram", "cxl-asic", (0, 1)),
        ("dram", "dram", None),
        ("numa:0", "dram", None),
        ("cxl-asic", "dram", None),
    ],
)
def test_the_nodes_of_near_and_far_memory(
    near: str, far: str, nodes: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    existing = {"has_cpu": {0}, "has_memory": {0, 1}}
    monkeypatch.setattr(advice_loads, "nodes_with", existing.__getitem__)
    assert advice_loads.nodes_of(near, far) == nodes
