"""Results as tables for a terminal of 80 columns, one function a result model."""

from nearfar.report.text.predictions import (
    contention,
    contention_model,
    counter_fits,
    map_work,
    pipeline,
    split,
)
from nearfar.report.text.record import noise, record
from nearfar.report.text.results import bandwidth, latency, mapped, stream
from nearfar.report.text.sheet import sheet

__all__ = [
    "bandwidth",
    "contention",
    "contention_model",
    "counter_fits",
    "latency",
    "map_work",
    "mapped",
    "noise",
    "pipeline",
    "record",
    "sheet",
    "split",
    "stream",
]
