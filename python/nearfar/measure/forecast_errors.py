"""Errors of a prediction against the run it was made for."""

from __future__ import annotations

from collections.abc import Mapping

from nearfar.records.figures import FigureModel, Origin
from nearfar.records.forecasts import ForecastError
from nearfar.stats import Estimate


def errors_of(
    predicted: FigureModel | None, measured: Mapping[str, Estimate]
) -> list[ForecastError]:
    """Predicted over measured, less 1, by predicted key; empty without a prediction.

    The inputs of a prediction are measured too, under keys of their own; they are not compared.
    """
    made = predicted.provenance if predicted else {}
    return [
        ForecastError(key=key, error=getattr(predicted, key) / estimate.value - 1)
        for key, estimate in measured.items()
        if key in made and made[key].origin is Origin.MODELLED and estimate.value > 0
    ]
