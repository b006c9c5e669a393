"""All figures of a sweep in one table: a row for each, with a column for each varied key.

The table is written as CSV, and also as Parquet if polars is installed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from nearfar.extras import missing
from nearfar.files import write_whole
from nearfar.records.frame import COLUMNS, row_of
from nearfar.records.sweep import SweepCell, varied_keys

CSV_NAME, PARQUET_NAME = "results.csv", "results.parquet"
_NEXT = "free some space, and sweep again"


def write_tables(folder: Path, cells: Sequence[SweepCell]) -> None:
    """Replace the tables atomically. Raises MachineError if one cannot be written."""
    write_whole(folder / CSV_NAME, csv_of(cells), _NEXT)
    if not missing("parquet"):
        write_whole(folder / PARQUET_NAME, _parquet(cells), _NEXT)


def csv_of(cells: Sequence[SweepCell]) -> str:
    """Return the table as CSV; an absent value is an empty field."""
    varied = varied_keys(cells)
    out = io.StringIO()
    writer = csv.DictWriter(out, _columns(varied), lineterminator="\n")
    writer.writeheader()
    for cell in cells:
        writer.writerows(_rows(cell, varied))
    return out.getvalue()


def _parquet(cells: Sequence[SweepCell]) -> bytes:
    import polars

    varied = varied_keys(cells)
    columns: dict[str, list[object]] = {name: [] for name in _columns(varied)}
    for cell in cells:
        for row in _rows(cell, varied):
            for name, value in row.items():
                columns[name].append(value)
    frame = polars.DataFrame(
        [polars.Series(name, _plain(values), strict=False) for name, values in columns.items()]
    )
    content = io.BytesIO()
    frame.write_parquet(content)
    return content.getvalue()


_CELL_COLUMNS = ("cell", "verb", "command")
_RUN_COLUMNS = ("noisy", "machine", "nearfar_version", "started")


def _columns(varied: Sequence[str]) -> list[str]:
    return [*_CELL_COLUMNS, *(f"grid.{key}" for key in varied), *COLUMNS, *_RUN_COLUMNS]


def _rows(cell: SweepCell, varied: Sequence[str]) -> list[dict[str, object]]:
    own: dict[str, object] = {
        "cell": cell.id,
        "verb": cell.verb,
        "command": " ".join(cell.flags),
        "noisy": cell.noise.noisy if cell.noise else None,
        "machine": cell.machine,
        "nearfar_version": cell.nearfar_version,
        "started": cell.started,
        **{f"grid.{key}": cell.varied.get(key) for key in varied},
    }
    return [
        {**own, **row_of(f.path, f.key, f.value, f.conditions, f.interval, f.provenance)}
        for f in cell.figures
    ]


def _plain(values: list[object]) -> list[object]:
    """One type a column: text if a key has both numbers and words."""
    kinds = {type(value) for value in values if value is not None}
    mixed = len(kinds) > 1 and not kinds <= {int, float}
    return [str(v) if mixed and v is not None else v for v in values]
