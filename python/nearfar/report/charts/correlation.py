"""A correlation matrix as a picture file: SVG, or a self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearfar.errors import BadInputError, MachineError
from nearfar.extras import require
from nearfar.report.charts.drawing import inline
from nearfar.report.charts.palette import INK, PAPER, series_color

if TYPE_CHECKING:
    import altair as alt

    from nearfar.model.counter_fits import Correlation
    from nearfar.report.charts.drawing import Picture

_CELL = 46  # pixels


def write_picture(correlation: Correlation, path: Path) -> None:
    """Draw the matrix offline. Raises BadInputError, or MachineError without the extra `charts`."""
    ending = path.suffix.lower()
    if ending not in (".svg", ".html"):
        raise BadInputError(f"invalid picture name {path}", "end it in .svg or .html")
    require("charts", f"the picture {path}")
    try:
        if ending == ".html":
            _chart(correlation).save(str(path), inline=True, embed_options={"actions": False})
        else:
            _chart(correlation).save(str(path))
    except OSError as error:
        raise MachineError(f"cannot write {path}: {error.strerror}", "name another file") from None


def _chart(correlation: Correlation) -> Picture:
    import altair as alt

    rows: list[dict[str, Any]] = [
        {"x": x, "y": y, "r": value, "text": "–" if value is None else f"{value:.2f}"}
        for y, line in zip(correlation.columns, correlation.matrix, strict=True)
        for x, value in zip(correlation.columns, line, strict=True)
    ]
    side = _CELL * len(correlation.columns)
    base: alt.Chart = alt.Chart(inline(rows)).encode(
        x=alt.X("x:N", sort=None, title=None, axis=alt.Axis(labelAngle=-40)),
        y=alt.Y("y:N", sort=None, title=None),
    )
    colors = alt.Scale(domain=[-1, 0, 1], range=[series_color(1), PAPER, series_color(0)])
    squares = base.mark_rect().encode(color=alt.Color("r:Q", scale=colors, title="r"))
    strong = "abs(datum.r) > 0.6"
    labels = base.mark_text(fontSize=12).encode(
        text="text:N", color=alt.condition(strong, alt.value(PAPER), alt.value(INK))
    )
    return alt.layer(squares, labels).properties(
        width=side, height=side, background=PAPER, title="Correlation"
    )
