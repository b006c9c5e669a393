"""How far a prediction was from the run that it was made for."""

from __future__ import annotations

from collections.abc import Mapping

from nearfar.records.forecasts import ForecastError
from nearfar.records.shape import Origin, Shaped
from nearfar.stats import Estimate


def errors_of(predicted: Shaped | None, measured: Mapping[str, Estimate]) -> list[ForecastError]:
    """Predicted over measured, less 1, by the keys that were predicted; none without a prediction.

    What a prediction was made from is measured too, and has keys of its own: it is no part of it.
    """
    made = predicted.provenance if predicted else {}
    return [
        ForecastError(key=key, error=getattr(predicted, key) / estimate.value - 1)
        for key, estimate in measured.items()
        if key in made and made[key].origin is Origin.MODELLED and estimate.value > 0
    ]
