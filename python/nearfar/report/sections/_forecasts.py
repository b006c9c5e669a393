"""Predictions beside the runs that they were made for, and below them the published tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearfar.records.forecasts import ForecastError, PublishedError, error_of
from nearfar.records.shape import Shaped
from nearfar.records.together import CompeteResult, CompeteRow, PipelineResult
from nearfar.report.section import Cell, Table, figure_cell

HEADS = ("Predicted", "Measured", "Error")
PUBLISHED_HEADS = ("Published table", "Predicted of it", "Cases", "Mean error", "Worst error")
PUBLISHED_CAPTION = (
    "The same models against tables that others measured: computed with this version of nearfar, "
    "from nothing that was measured here"
)


@dataclass(frozen=True)
class Compared:
    """One figure that was predicted before it was measured."""

    labels: tuple[str, ...]
    predicted: Shaped
    measured: CompeteRow | PipelineResult
    key: str

    def error_text(self) -> str:
        """Predicted over measured, less 1, with its sign."""
        return told(self.measured.errors, self.key)


def told(errors: Sequence[ForecastError], key: str) -> str:
    """The error of a figure with its sign; a dash where it was not predicted."""
    error = error_of(errors, key)
    return "–" if error is None else f"{error:+.1%}"


def of_competition(result: CompeteResult) -> list[Compared]:
    """Rates of all rows, by side."""
    told = result.forecast.rows if result.forecast else []
    found = []
    for forecast in told:
        for row in result.rows:
            if (row.near_threads, row.far_threads) != (forecast.near_threads, forecast.far_threads):
                continue
            found += [
                Compared(
                    (f"{row.near_threads} + {row.far_threads}", side),
                    forecast, row, f"{side}_bandwidth_bytes_per_s",
                )
                for side in ("near", "far", "sum")
            ]  # fmt: skip
    return found


def of_pipeline(result: PipelineResult) -> list[Compared]:
    """Stages and the whole."""
    if result.forecast is None:
        return []
    stages = {"generate": "generation", "transfer": "transfer", "analyse": "analysis",
              "total": "whole"}  # fmt: skip
    return [
        Compared((name,), result.forecast, result, f"{stage}_time_s")
        for stage, name in stages.items()
    ]


def table(heads: Sequence[str], compared: Sequence[Compared], caption: str) -> Table:
    """Predictions made before the run, and what it then took."""
    rows = [
        [
            *map(Cell, each.labels), figure_cell(each.predicted, each.key),
            figure_cell(each.measured, each.key), Cell(each.error_text()),
        ]
        for each in compared
    ]  # fmt: skip
    first = len(heads)
    return Table([*heads, *HEADS], rows, caption, frozenset(range(first, first + len(HEADS))))


def published_rows(published: Sequence[PublishedError]) -> list[list[str]]:
    """Cells of the table below; a single case has no mean."""
    return [
        [
            error.table, error.what, str(error.cases),
            f"{error.mean_error:.1%}" if error.cases > 1 else "–", f"{error.worst_error:+.1%}",
        ]
        for error in published
    ]  # fmt: skip


def published_table(published: Sequence[PublishedError]) -> list[Table]:
    """Errors against published tables, where a prediction told them."""
    rows = [[Cell(text) for text in row] for row in published_rows(published)]
    right = frozenset(range(2, len(PUBLISHED_HEADS)))
    return [Table(PUBLISHED_HEADS, rows, PUBLISHED_CAPTION, right, stacked=True)] if rows else []
