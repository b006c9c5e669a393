"""An origin that figures share is said once: over the table or the column, and never lost."""

from __future__ import annotations

import pytest

from nearfar.records.shape import Origin
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


def test_without_a_caption_the_columns_describe() -> None:
    table = Table(["first", "second"], [[NAME, EMULATED]])
    assert table.origin is None
    assert table.column_origins[1] is Origin.EMULATED
