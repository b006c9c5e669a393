"""One Parquet file of all figures: a row for each, with a column for each varied key."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path

from nearfar.errors import MachineError
from nearfar.files import write_whole
from nearfar.records.sweep import SweepCell, varied_keys

FILE_NAME = "results.parquet"


def require_polars() -> None:
    """Raise MachineError if polars is not installed, before a long run starts."""
    try:
        import polars  # noqa: F401
    except ImportError:
        raise MachineError(
            "the table of a sweep needs polars, which is not installed",
            f"{sys.executable} -m pip install polars",
        ) from None


def write_table(path: Path, cells: Sequence[SweepCell]) -> None:
    """Replace the table atomically. Raises MachineError if it cannot be written."""
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
    write_whole(path, content.getvalue(), "free some space, and sweep again")


_CELL_COLUMNS = ("cell", "verb", "command")
_FIGURE_COLUMNS = (
    "path",
    "conditions",
    "key",
    "value",
    "low",
    "high",
    "origin",
    "statistic",
    "samples",
    "noisy",
    "machine",
    "nearfar_version",
    "started",
)


def _columns(varied: Sequence[str]) -> list[str]:
    return [*_CELL_COLUMNS, *(f"grid.{key}" for key in varied), *_FIGURE_COLUMNS]


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
        {
            **own,
            "path": figure.path,
            "key": figure.key,
            "value": float(figure.value),
            "conditions": "; ".join(f"{k}={v}" for k, v in figure.conditions.items()),
            "low": figure.interval[0] if figure.interval else None,
            "high": figure.interval[1] if figure.interval else None,
            "origin": figure.provenance.origin.value if figure.provenance else None,
            "statistic": figure.provenance.statistic if figure.provenance else None,
            "samples": figure.provenance.samples if figure.provenance else None,
        }
        for figure in cell.figures
    ]


def _plain(values: list[object]) -> list[object]:
    """One type a column: text if a key has both numbers and words."""
    kinds = {type(value) for value in values if value is not None}
    mixed = len(kinds) > 1 and not kinds <= {int, float}
    return [str(v) if mixed and v is not None else v for v in values]
