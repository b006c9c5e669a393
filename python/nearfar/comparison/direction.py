"""Direction of a key (which values are better): from the schema's table, or by its unit."""

from __future__ import annotations

from nearfar.records.keys import KEYS, Direction
from nearfar.records.numbers import Quantity
from nearfar.records.profile import better_by_unit


def better(key: str) -> Direction | None:
    """Return which values of a key are better; None if it has no direction."""
    declared = KEYS.get(key)
    return declared.better if declared else better_by_unit(key)


def better_of(quantity: Quantity) -> Direction | None:
    """Return which values of a figure are better; None if its key has no direction, or has none in
    its model (``FigureModel.undirected``)."""
    return better(quantity.key) if quantity.is_directed else None


def is_count(key: str) -> bool:
    """Whether a key is a number of events or things."""
    declared = KEYS.get(key)
    return declared is not None and declared.unit == "count"


def is_compared(key: str) -> bool:
    """Whether a key is about memory or a program, not about nearfar or the means of timing."""
    declared = KEYS.get(key)
    return declared is None or declared.compared
