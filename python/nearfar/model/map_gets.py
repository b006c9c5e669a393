"""Time of map gets from the structure of the code: the structure model of the Nicosia thesis.

Equation: t = n·(L_read·(1 + 1 + 1 + 1/3 + 1) + size / B_read): five steps of a get that load from
far memory, one of them every third time.
Source: the thesis, with L_read 305 ns and B_read 7.45 GB/s (profile ucy-optane).
Limits: gets alone; no cache and no software cost, so small maps come out too slow. The thesis
states a mean error of 10.8 %; its own printed table gives 13.46 %. Interval: the profile's figures
± 10 %, or their ranges.
"""

from __future__ import annotations

from nearfar.model.map_work import (
    PROFILE_MARGIN,
    MapPrediction,
    MapWork,
    constant,
    mark_binding,
    time_term,
)
from nearfar.model.results import CALIBRATION_LEVELS, Term, modelled
from nearfar.records.profile import Profile

_LOADS = 1 + 1 + 1 + 1 / 3 + 1
_LIMITS = [
    "a named model, kept as published: every step of a get goes to far memory",
    "no software cost",
]


def predict(work: MapWork, far: Profile) -> MapPrediction:
    """Time of gets. Raises BadInputError if the profile lacks a figure."""
    read = constant(far, "read_latency_ns", 1e-9, PROFILE_MARGIN)
    bandwidth = constant(far, "read_bandwidth_bytes_per_s", 1.0, PROFILE_MARGIN)
    loads = work.operations * _LOADS
    moved = work.operations * work.value_bytes
    terms = [
        time_term("loads", loads * read.value, "n · 4⅓ · read latency"),
        time_term("values", moved / bandwidth.value, "n · size / read bandwidth"),
        Term(name="loads a get", value=_LOADS, unit="ratio"),
    ]
    figures = (
        terms[0].value + terms[1].value,
        loads * read.low + moved / bandwidth.high,
        loads * read.high + moved / bandwidth.low,
    )
    return MapPrediction(
        operation=work.operation,
        model="structure",
        operations=work.operations,
        value_bytes=work.value_bytes,
        calibration_level=0,
        calibration=f"0, {CALIBRATION_LEVELS[0]}",
        terms=mark_binding(terms),
        limits=_LIMITS,
        **modelled(
            {"time_s": figures},
            samples=0,
            note="structure model as published; interval: profile ± 10 %",
        ),
    )
