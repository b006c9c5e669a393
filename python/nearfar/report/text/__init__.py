"""Results as tables for a terminal of 80 columns, one function a result model."""

from nearfar.report.text.record import noise, record
from nearfar.report.text.results import bandwidth, latency, mapped, published_curve, stream

__all__ = ["bandwidth", "latency", "mapped", "noise", "published_curve", "record", "stream"]
