"""Pictures as inline SVG: Altair describes them, and vl-convert draws them, offline.

Altair and vl-convert are imported only when a picture is drawn. Each picture is drawn twice, for a
wide and a narrow window, at its display size, so that text is never scaled.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from nearfar.extras import missing
from nearfar.records.figures import Origin
from nearfar.report.charts.palette import GRID, INK, MUTED, as_variable
from nearfar.report.html.section import Figure
from nearfar.units import GIB, KIB, MIB

if TYPE_CHECKING:
    import altair as alt

    Picture = alt.LayerChart | alt.FacetChart

#: Total width of a picture in pixels, including axes and labels.
FULL_WIDTH, HALF_WIDTH, NARROW_WIDTH = 960, 464, 318


@dataclass(frozen=True)
class Canvas:
    """The plotting area that a builder fills, without axes and labels."""

    width: int
    height: int
    narrow: bool


Builder = Callable[[Canvas], "Picture"]

_CONFIG: dict[str, Any] = {
    "background": None,
    "font": "sans-serif",
    # the reader's font may be wider than the one vl-convert measures with
    "padding": {"left": 12, "right": 12, "top": 4, "bottom": 2},
    "view": {"stroke": None},
    "axis": {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "domainColor": GRID,
        "tickColor": GRID,
        "gridColor": GRID,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "labelPadding": 5,
        "labelLimit": 260,
    },
    "axisY": {"domain": False, "ticks": False},
    "text": {"fontSize": 12, "color": INK},
}

#: Line height of text in pixels.
ROW = 15

_serial = itertools.count(1)


def draw(
    caption: str,
    build: Builder,
    *,
    height: int,
    origins: tuple[Origin, ...],
    narrow_height: int | None = None,
    half: bool = False,
) -> Figure:
    """Draw a picture in both widths; heights are those of the plotting area.

    Without the extra `charts` the picture is empty; the tables contain the same data.
    """
    if missing("charts"):
        return Figure(caption, "", "", origins, half)
    wide = _fitted(build, HALF_WIDTH if half else FULL_WIDTH, height, False)
    narrow = _fitted(build, NARROW_WIDTH, narrow_height or height, True)
    return Figure(caption, wide, narrow, origins, half)


def _fitted(build: Builder, target: int, height: int, narrow: bool) -> str:
    """Return the picture at a total width of ``target``: draw, measure, and draw again to fit."""
    width = target - (110 if narrow else 190)
    svg = _to_svg(build, Canvas(width, height, narrow))
    excess = _width(svg) - target
    if abs(excess) > 2:
        svg = _to_svg(build, Canvas(max(width - excess, 80), height, narrow))
    return for_page(svg)


def _to_svg(build: Builder, canvas: Canvas) -> str:
    import altair as alt
    import vl_convert

    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    # Altair checks each part against its schema, which takes longer than drawing; tests check it.
    # For the same reason builders pass channel objects, not strings that Altair would look up.
    with alt.utils.schemapi.debug_mode(False):
        document = build(canvas).to_dict(validate=False)
    return str(vl_convert.vegalite_to_svg(document, vl_version=version, config=_CONFIG))


def _width(svg: str) -> int:
    match = re.search(r'width="([0-9.]+)"', svg)
    return math.ceil(float(match[1])) if match else 0


def for_page(svg: str) -> str:
    """Return the SVG with unique ids, colors as variables, and without text for screen readers."""
    ElementTree.register_namespace("", "http://www.w3.org/2000/svg")
    prefix = f"chart{next(_serial)}-"
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        for key, value in list(element.attrib.items()):
            if key == "role" or key.startswith("aria-"):
                del element.attrib[key]
            elif key == "id":
                element.set(key, prefix + value)
            elif key.endswith("href") and value.startswith("#"):
                element.set(key, f"#{prefix}{value[1:]}")
            else:
                element.set(key, as_variable(value.replace("url(#", f"url(#{prefix}")))
    root.set("aria-hidden", "true")  # the tables contain the same data in accessible form
    return ElementTree.tostring(root, encoding="unicode")


def inline(rows: Sequence[dict[str, Any]]) -> alt.InlineData:
    """Rows as data of a chart."""
    import altair as alt

    return alt.InlineData(values=list(rows))


SIZE_LABEL = (
    f"datum.value < {KIB} ? datum.value + ' B' : datum.value < {MIB} ? datum.value / {KIB} + ' KiB'"
    f" : datum.value < {GIB} ? datum.value / {MIB} + ' MiB' : datum.value / {GIB} + ' GiB'"
)


def size_ticks(low: float, high: float, most: int) -> list[int]:
    """Return at most ``most`` powers of two between two sizes, evenly spaced."""
    first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
    step = max(1, math.ceil((last - first + 1) / most))
    return [2**power for power in range(first, last + 1, step)]


def min_positive(values: Iterable[float]) -> float:
    """Return the start of a logarithmic axis: a value of zero is drawn at its edge."""
    return min((value for value in values if value > 0), default=1.0)


def decade_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10, 20 … between two values, for a logarithmic axis."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [m * 10.0**p for p in powers for m in (1, 2, 5)]
    return [tick for tick in ticks if low <= tick <= high]


def spread_out(positions: Sequence[float], gap: float) -> list[float]:
    """Move positions apart as little as possible so that neighbors are at least ``gap`` apart."""
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    groups: list[list[float]] = []  # each: centre, how many
    for index in order:
        groups.append([positions[index], 1])
        while len(groups) > 1 and _close(groups[-2], groups[-1], gap):
            (a, n), (b, m) = groups[-2:]
            groups[-2:] = [[(a * n + b * m) / (n + m), n + m]]
    moved = [centre + (i - (n - 1) / 2) * gap for centre, n in groups for i in range(int(n))]
    return [moved[order.index(i)] for i in range(len(positions))]


def _close(upper: list[float], lower: list[float], gap: float) -> bool:
    return lower[0] - upper[0] < gap * (upper[1] + lower[1]) / 2


@dataclass(frozen=True)
class End:
    """The name of a line, written next to its last point."""

    name: str
    y: float
    color: str


def end_labels(
    ends: Sequence[End], canvas: Canvas, domain: tuple[float, float], log: bool
) -> alt.Chart:
    """Return names at the right edge, next to their lines, moved apart where they overlap."""
    scale = math.log if log else float
    low, high = scale(domain[0]), scale(domain[1])
    at = [canvas.height * (1 - (scale(end.y) - low) / (high - low)) for end in ends]
    return _names(ends, spread_out(at, 15), canvas.width)


def labels_above(ends: Sequence[End], lines_below: int = 0) -> alt.Chart:
    """Return names in rows above the plotting area, for windows too narrow for names at the line
    ends; ``lines_below`` rows are reserved for other labels."""
    top_down = sorted(ends, key=lambda end: -end.y)
    rows = len(top_down) + lines_below
    return _names(top_down, [ROW * (i - rows) for i in range(len(top_down))], 0)


def _names(ends: Sequence[End], pixels: Sequence[float], x_pixel: int) -> alt.Chart:
    import altair as alt

    rows = [
        {"name": end.name, "pixel": pixel, "color": end.color}
        for end, pixel in zip(ends, pixels, strict=True)
    ]
    labels: alt.Chart = (
        alt.Chart(inline(rows))
        .mark_text(
            align="left",
            baseline="middle",
            dx=8,
            fontSize=12,
            fontWeight="bold",
        )
        .encode(
            x=alt.value(x_pixel),
            y=alt.Y("pixel:Q", scale=None, axis=None),
            text=alt.Text("name:N"),
            color=alt.Color("color:N", scale=None),
        )
    )
    return labels
