"""Tables of predictions next to the measured runs, and of errors against published tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearfar.records.figures import FigureModel
from nearfar.records.forecasts import ForecastError, PublishedError, error_of
from nearfar.records.together import CompeteResult, CompeteRow, PipelineResult
from nearfar.report.html.section import Cell, Table, figure_cell

HEADS = ("Predicted", "Measured", "Error")
PUBLISHED_HEADS = ("Published table", "What is predicted", "Cases", "Mean error", "Worst error")
PUBLISHED_CAPTION = (
    "Errors of the same models against published tables: computed with this version of nearfar, "
    "without any measurement of this machine"
)

#: Predicted times of a pipeline, by stage.
PIPELINE_FIGURES = {
    "generation": "generate_time_s",
    "transfer": "transfer_time_s",
    "analysis": "analyse_time_s",
    "whole": "total_time_s",
}


@dataclass(frozen=True)
class Compared:
    """One figure that was predicted before it was measured."""

    labels: tuple[str, ...]
    predicted: FigureModel
    measured: CompeteRow | PipelineResult
    key: str

    def error_text(self) -> str:
        """Predicted over measured, less 1, with its sign."""
        return signed_error(self.measured.errors, self.key)


def signed_error(errors: Sequence[ForecastError], key: str) -> str:
    """Return the error of a figure with its sign; a dash if it was not predicted."""
    error = error_of(errors, key)
    return "–" if error is None else f"{error:+.1%}"


def of_competition(result: CompeteResult) -> list[Compared]:
    """Return the rates of all rows, by side."""
    forecasts = result.forecast.rows if result.forecast else []
    found = []
    for forecast in forecasts:
        for row in result.rows:
            if (row.near_threads, row.far_threads) != (forecast.near_threads, forecast.far_threads):
                continue
            found += [
                Compared(
                    (f"{row.near_threads} + {row.far_threads}", side),
                    forecast,
                    row,
                    f"{side}_bandwidth_bytes_per_s",
                )
                for side in ("near", "far", "sum")
            ]
    return found


def of_pipeline(result: PipelineResult) -> list[Compared]:
    """Return the stages and the total."""
    if result.forecast is None:
        return []
    return [
        Compared((name,), result.forecast, result, key) for name, key in PIPELINE_FIGURES.items()
    ]


def table(heads: Sequence[str], compared: Sequence[Compared], caption: str) -> Table:
    """Return a table of predictions made before the run, and the measured figures."""
    rows = [
        [
            *map(Cell, each.labels),
            figure_cell(each.predicted, each.key),
            figure_cell(each.measured, each.key),
            Cell(each.error_text()),
        ]
        for each in compared
    ]
    first = len(heads)
    return Table([*heads, *HEADS], rows, caption, frozenset(range(first, first + len(HEADS))))


def published_rows(published: Sequence[PublishedError]) -> list[list[str]]:
    """Return the cells of the published table; a single case has no mean."""
    return [
        [
            error.table,
            error.what,
            str(error.cases),
            f"{error.mean_error:.1%}" if error.cases > 1 else "–",
            f"{error.worst_error:+.1%}",
        ]
        for error in published
    ]


def published_table(published: Sequence[PublishedError]) -> list[Table]:
    """Return errors against published tables, if a prediction reports them."""
    rows = [[Cell(text) for text in row] for row in published_rows(published)]
    right = frozenset(range(2, len(PUBLISHED_HEADS)))
    return [Table(PUBLISHED_HEADS, rows, PUBLISHED_CAPTION, right, stacked=True)] if rows else []
