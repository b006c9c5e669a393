"""Readability of the pictures: ticks, and names that do not overlap."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearfar.report.charts.drawing import (
    Builder,
    Canvas,
    decade_ticks,
    draw,
    for_page,
    size_ticks,
    spread_out,
)
from nearfar.report.charts.lines import Axis, Line, Look, Spot, Strip, lanes, line_chart
from nearfar.report.charts.rows import Bar, Dot, row_chart, scaling_chart
from nearfar.units import GIB, KIB, MIB


@given(st.lists(st.floats(0, 400), max_size=8), st.floats(1, 30))
def test_spread_positions_keep_their_gap_and_their_order(
    positions: list[float], gap: float
) -> None:
    moved = spread_out(positions, gap)
    ranked = sorted(range(len(positions)), key=lambda i: (positions[i], moved[i]))
    for left, right in pairwise(ranked):
        assert moved[right] - moved[left] >= gap * 0.999


@given(st.lists(st.integers(0, 8), min_size=1, max_size=8, unique=True))
def test_positions_far_enough_apart_stay(places: list[int]) -> None:
    positions = [place * 20.0 for place in places]
    assert spread_out(positions, 15) == pytest.approx(positions)


def test_size_ticks_are_even_powers_of_two() -> None:
    assert size_ticks(4 * KIB, GIB, 10) == [4 * KIB * 4**i for i in range(10)]
    assert size_ticks(4 * KIB, 4 * MIB, 3) == [4 * KIB, 64 * KIB, MIB]
    assert size_ticks(5 * KIB, 7 * KIB, 3) == []


def test_decade_ticks_are_between() -> None:
    assert decade_ticks(1.5, 110) == [2, 5, 10, 20, 50, 100]


def test_labels_without_room_go_to_another_line() -> None:
    assert lanes([], []) == []
    assert lanes([0, 50, 100], [40, 40, 40]) == [0, 0, 0]
    assert lanes([0, 20, 35, 45], [40, 40, 40, 40]) == [0, 1, 2, 0]


_SPOTS = [Spot(4096, 1.0, 0.9, 1.1), Spot(8192, 2.0, 1.9, 2.1)]
_LINES = [
    Line("dram", "#1f6aa5", _SPOTS),
    Line("shm:", "#c4561b", _SPOTS, "emulated"),
    Line("device", "#000000", [Spot(4096, 3.0, 3.0, 3.0), Spot(8192, 3.0, 3.0, 3.0)], "published"),
]
_BARS = [Bar("one", "a", 1.0, 0.9, 1.1, "1 GB/s"), Bar("two", "b", 9.0, 8.0, 9.5, "9 GB/s", True)]
_DOTS = [Dot("copy", n, float(n), n - 0.1, n + 0.1, n > 8, False) for n in (1, 2, 4, 8, 16)]
_CHARTS = {
    "curves": line_chart(
        _LINES,
        Axis("size", "sizes"),
        Axis("latency (ns)", "log"),
        Look("band", [Strip(4096, 4096, 8192, "4 KiB")]),
    ),
    "one curve": line_chart(_LINES[:1], Axis("bandwidth"), Axis("latency (ns)")),
    "rows": row_chart(_BARS, "bandwidth (GB/s)"),
    "logarithmic rows": row_chart(_BARS, "bandwidth (GB/s)", log=True),
    "many threads": scaling_chart(_DOTS, "bandwidth (GB/s)"),
    "few threads": scaling_chart(_DOTS[:2], "bandwidth (GB/s)"),
}


@pytest.mark.parametrize("name", _CHARTS)
@pytest.mark.parametrize("narrow", [False, True])
def test_charts_are_valid_vega_lite(name: str, narrow: bool) -> None:
    build: Builder = _CHARTS[name]
    build(Canvas(300, 200, narrow)).to_dict(validate=True)


def test_letters_of_a_record_stay_letters_in_a_picture() -> None:
    hostile = 'x role="<b>&amp;" id="x'
    build = row_chart([Bar(hostile, "a", 1.0, 0.9, 1.1, "1 GB/s")], "x")
    picture = draw("", build, height=50, origins=()).wide
    assert hostile in [element.text for element in ElementTree.fromstring(picture).iter()]


def test_names_never_clash_and_colors_follow_the_page() -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg"><clipPath id="a"/>'
        '<path clip-path="url(#a)" role="graphics-symbol" stroke="#1f6aa5"/></svg>'
    )
    first, second = (list(ElementTree.fromstring(for_page(svg)).iter()) for _ in range(2))
    assert first[1].get("id") != second[1].get("id")
    assert first[2].get("clip-path") == f"url(#{first[1].get('id')})"
    assert first[2].get("stroke") == "var(--series-1)"
    assert first[2].get("role") is None


def test_pictures_are_drawn_at_the_width_they_are_shown_in() -> None:
    figure = draw("", _CHARTS["rows"], height=50, origins=())
    widths = [ElementTree.fromstring(svg).get("width") for svg in (figure.wide, figure.narrow)]
    assert [float(width or 0) for width in widths] == pytest.approx([960, 318], abs=3)
