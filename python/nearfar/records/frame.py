"""Results as tables of polars, which is an optional dependency: a row for each figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from nearfar.extras import require

if TYPE_CHECKING:
    from polars import DataFrame
    from pydantic import BaseModel

    from nearfar.records.figures import Provenance
    from nearfar.records.numbers import Quantity, SettingNumber
    from nearfar.records.run import Sections

#: Columns of a figure, in order.
COLUMNS = (
    "path",
    "conditions",
    "key",
    "value",
    "low",
    "high",
    "origin",
    "statistic",
    "samples",
)


def row_of(
    path: str,
    key: str,
    value: float,
    conditions: Mapping[str, object],
    interval: tuple[float, float] | None,
    provenance: Provenance | None,
) -> dict[str, object]:
    """Return one figure as a row with the columns of ``COLUMNS``."""
    return {
        "path": path,
        "conditions": "; ".join(f"{k}={v}" for k, v in conditions.items()),
        "key": key,
        "value": float(value),
        "low": interval[0] if interval else None,
        "high": interval[1] if interval else None,
        "origin": provenance.origin.value if provenance else None,
        "statistic": provenance.statistic if provenance else None,
        "samples": provenance.samples if provenance else None,
    }


def frame_of_model(model: BaseModel) -> DataFrame:
    """Return the figures of one result. Raises MachineError if polars is not installed."""
    from nearfar.records.numbers import numbers_of

    return _frame(numbers_of(model, ""))


def frame_of_sections(sections: Sections) -> DataFrame:
    """Return the figures of all sections of a run. Raises MachineError as ``frame_of_model``."""
    from nearfar.records.numbers import numbers

    return _frame(numbers(sections))


def _frame(found: Iterable[Quantity | SettingNumber]) -> DataFrame:
    from nearfar.records.numbers import Quantity

    require("parquet", "to_polars()")
    import polars

    schema = {
        **dict.fromkeys(COLUMNS, polars.String),
        **dict.fromkeys(("value", "low", "high"), polars.Float64),
        "samples": polars.Int64,
    }
    rows = [
        row_of(q.path, q.key, q.value, dict(q.conditions), q.interval, q.provenance)
        for q in found
        if isinstance(q, Quantity)
    ]
    return polars.DataFrame(rows, schema=schema)
