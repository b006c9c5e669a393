"""Colours of the pictures. Each is drawn as a fixed value and leaves as a variable of the style
sheet, so that a picture follows the page into the dark."""

from __future__ import annotations

INK, MUTED, GRID, PAPER = "#1d2430", "#626b78", "#dfe3e8", "#fffffe"

#: Told apart by people who confuse red and green; lines also carry their names.
SERIES = ("#1f6aa5", "#c4561b", "#2c7a55", "#7a4fa0", "#a83a5c", "#1d7c8a")

_VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    PAPER: "--card",
    **{colour: f"--series-{i + 1}" for i, colour in enumerate(SERIES)},
}


def series_colour(index: int) -> str:
    """The colour of the index-th series; they repeat after six."""
    return SERIES[index % len(SERIES)]


def as_variable(value: str) -> str:
    """The page's variable for one of these colours; anything else as it is."""
    variable = _VARIABLES.get(value)
    return f"var({variable})" if variable else value
