"""The result of a verb that writes no record, read from its JSON file."""

from __future__ import annotations

from pydantic import BaseModel
from rich.console import RenderableType

from nearfar.comparison.matching import figures_of_answer
from nearfar.records.numbers import Quantity
from nearfar.report.terminal.comparison import figure_name
from nearfar.report.terminal.layout import columns
from nearfar.report.terminal.sheet import amount
from nearfar.report.wording import format_interval


def answer(result: BaseModel) -> RenderableType:
    """Return one row per figure."""
    return columns(["Figure", "Value", "Origin"], [_row(q) for q in figures_of_answer(result)], 1)


def _row(quantity: Quantity) -> list[str]:
    interval = quantity.interval
    span = f"  ({format_interval(quantity.key, *interval)})" if interval else ""
    origin = quantity.provenance.origin.value if quantity.provenance else "not recorded"
    return [figure_name(quantity), amount(quantity.key, float(quantity.value)) + span, origin]
