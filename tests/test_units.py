from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearfar import units
from nearfar.errors import BadInputError


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("1", 1),
        ("64KiB", 65536),
        ("64 kib", 65536),
        ("4k", 4096),
        ("3M", 3 << 20),
        ("2GB", 2_000_000_000),
        ("1.5g", 3 << 29),
        ("0.5KiB", 512),
        ("1TiB", 1 << 40),
        (" 7b ", 7),
    ],
)
def test_sizes(text: str, size_bytes: int) -> None:
    assert units.parse_size(text) == size_bytes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "0",
        "-1",
        "-64KiB",
        "0.0g",
        "1.5",
        "1.5b",
        "1e6",
        "64Kib64",
        "KiB",
        "inf",
        "nan",
        "1,5g",
        "٣",
        "1 0",
    ],
)
def test_sizes_that_are_refused(text: str) -> None:
    with pytest.raises(BadInputError) as refused:
        units.parse_size(text)
    assert text in refused.value.what
    assert "64KiB" in refused.value.next_step


UNITS = {
    "": 1,
    "B": 1,
    "K": 1 << 10,
    "KiB": 1 << 10,
    "kB": 10**3,
    "MiB": 1 << 20,
    "MB": 10**6,
    "GiB": 1 << 30,
    "GB": 10**9,
    "TiB": 1 << 40,
    "TB": 10**12,
}


@given(st.integers(1, 2**21), st.sampled_from(sorted(UNITS)), st.sampled_from(["", " "]))
def test_whole_sizes_are_exact(number: int, unit: str, space: str) -> None:
    assert units.parse_size(f"{number}{space}{unit}") == number * UNITS[unit]


@given(st.integers(1, 2**53))
def test_a_size_that_is_shown_is_read_back_nearly(size_bytes: int) -> None:
    shown = units.format_size(size_bytes)
    number, unit = re.fullmatch(r"([0-9.e+]+) (\w+)", shown).groups()  # type: ignore[union-attr]
    assert float(number) * UNITS[unit] == pytest.approx(size_bytes, rel=0.05)


@given(st.text())
def test_any_text_is_a_size_or_refused(text: str) -> None:
    try:
        size_bytes = units.parse_size(text)
    except BadInputError:
        return
    assert size_bytes > 0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 5),
        ("0.5", 0.5),
        ("500ms", 0.5),
        ("20us", 2e-5),
        ("2min", 120),
        ("1h", 3600),
        ("3 s", 3),
    ],
)
def test_times(text: str, seconds: float) -> None:
    assert units.parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "0", "0ms", "-1", "1 day", "s", "1m", "1e3", "inf"])
def test_times_that_are_refused(text: str) -> None:
    with pytest.raises(BadInputError):
        units.parse_seconds(text)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0", [0]), ("0-3,8", [0, 1, 2, 3, 8]), ("3, 1", [3, 1]), ("1,0-2", [1, 0, 2]), ("2,2", [2])],
)
def test_processors(text: str, cpus: list[int]) -> None:
    assert units.parse_cpus(text) == cpus


@pytest.mark.parametrize("text", ["", ",", "3-1", "-1", "a", "1-", "0-99999999", "1;2"])
def test_processors_that_are_refused(text: str) -> None:
    with pytest.raises(BadInputError):
        units.parse_cpus(text)


def test_figures_as_people_read_them() -> None:
    assert units.format_size(65536) == "64 KiB"
    assert units.format_size(3 << 29) == "1.5 GiB"
    assert units.format_size(5 << 40) == "5 TiB"
    assert units.format_size(12) == "12 B"
    assert units.format_bandwidth(12.34e9) == "12.3 GB/s"
    assert units.format_bandwidth(1.5e12) == "1.5 TB/s"
    assert units.format_bandwidth(999.0) == "0.999 kB/s"
    assert units.format_time(12.34e-9) == "12.3 ns"
    assert units.format_time(4.5) == "4.5 s"
    assert units.format_time(0.25e-9) == "0.25 ns"
    assert units.format_time(1234.5) == "1234 s"
    assert units.format_time(1244491) == "14.4 days"
    assert units.format_time(1e9) == "11,574 days"


def test_more_than_any_memory_is_refused() -> None:
    assert units.parse_size(f"{(1 << 62) - 1}") == (1 << 62) - 1
    with pytest.raises(BadInputError, match="more than any memory"):
        units.parse_size(f"{1 << 62}")
