"""An origin that figures share is said once: over the table or the column, and never lost."""

from __future__ import annotations

import pytest

from nearfar.model.interleave import loaded_memory_of, loaded_tier
from nearfar.profiles import load_profile
from nearfar.records.figures import Origin
from nearfar.records.numbers import Quantity, numbers_of
from nearfar.report.html.section import Cell, Table

EMULATED = Cell("1 ns", origin=Origin.EMULATED)
MEASURED = Cell("1 ns", origin=Origin.MEASURED)
MODELLED = Cell("1 ns", origin=Origin.MODELLED)
NAME = Cell("row")


@pytest.mark.parametrize(
    ("rows", "whole", "column"),
    [
        ([[NAME, EMULATED], [NAME, EMULATED]], Origin.EMULATED, None),
        ([[EMULATED, MODELLED], [EMULATED, MODELLED]], None, Origin.MODELLED),
        ([[NAME, EMULATED], [NAME, MEASURED]], None, None),
        ([[NAME, MEASURED], [NAME, MEASURED]], None, None),
        ([[NAME, Cell("", origin=Origin.EMULATED)]], None, None),
    ],
)
def test_shared_origins(
    rows: list[list[Cell]], whole: Origin | None, column: Origin | None
) -> None:
    table = Table(["first", "second"], rows, "caption")
    assert (table.origin, table.column_origins[1]) == (whole, column)


def test_every_figure_of_a_memory_under_load_has_an_origin() -> None:
    memory = loaded_memory_of(load_profile("cxl-asic"))
    load = loaded_tier(
        memory,
        {
            "read_share": 1.0,
            "bandwidth_bytes_per_s": 1e9,
            "latency_ns": 260.0,
            "utilization": 0.1,
        },
    )
    found = [number for number in numbers_of(load, "") if isinstance(number, Quantity)]
    assert {number.key for number in found} == {
        "read_share",
        "bandwidth_bytes_per_s",
        "idle_latency_ns",
        "latency_ns",
        "utilization",
    }
    assert all(number.provenance for number in found)


def test_without_a_caption_the_columns_describe() -> None:
    table = Table(["first", "second"], [[NAME, EMULATED]])
    assert table.origin is None
    assert table.column_origins[1] is Origin.EMULATED
