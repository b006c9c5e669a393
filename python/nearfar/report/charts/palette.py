"""Colors of the pictures. A picture is drawn with fixed values, which are then replaced by
variables of the style sheet, so that it follows the page's dark mode."""

from __future__ import annotations

#: ``PAPER`` is the background of a picture: the page's card, not the page itself (``--paper``).
INK, MUTED, GRID, PAPER = "#1d2430", "#626b78", "#dfe3e8", "#fffffe"

#: Distinguishable with red-green color blindness; lines also carry their names.
SERIES = ("#1f6aa5", "#c4561b", "#2c7a55", "#7a4fa0", "#a83a5c", "#1d7c8a")

_VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    PAPER: "--card",
    **{color: f"--series-{i + 1}" for i, color in enumerate(SERIES)},
}


def series_color(index: int) -> str:
    """Return the color of the index-th series; colors repeat after six."""
    return SERIES[index % len(SERIES)]


def as_variable(value: str) -> str:
    """Return the page's variable for one of these colors; any other value unchanged."""
    variable = _VARIABLES.get(value)
    return f"var({variable})" if variable else value
