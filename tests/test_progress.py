"""Progress of long work where standard error is a file: sparse lines."""

from __future__ import annotations

import time

import pytest

from nearfar.report import console


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in its only member."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def steps(clock: list[float], *moments: tuple[float, str, float]) -> None:
    clock[0] = 100.0
    with console.progress(quiet=False) as shown:
        for at_s, what, done in moments:
            clock[0] = 100.0 + at_s
            shown.step(what, done)


def test_each_section_has_a_line(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    steps(
        clock,
        (3.0, "latency dram", 0.05),
        (3.5, "latency dram", 0.06),
        (20.0, "latency dram", 0.1),
        (21.0, "bandwidth dram", 0.2),
        (40.0, "stream", 1.0),
    )
    lines = ["  5%  latency dram", " 20%  bandwidth dram", " 99%  stream"]
    assert capsys.readouterr().err.splitlines() == lines


def test_short_work_and_quick_steps_have_few_lines(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    steps(clock, *((i / 10, f"step {chr(97 + i)}", i / 20) for i in range(20)))
    assert capsys.readouterr().err == ""
    steps(clock, *((2 + i / 10, f"step {chr(97 + i)}", i / 20) for i in range(20)))
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_count_has_a_line_every_ten_seconds(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    steps(clock, *((i / 4, f"{i:,} images explored", i / 200) for i in range(200)))
    assert 5 <= len(capsys.readouterr().err.splitlines()) <= 6


def test_quiet_has_none(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress(quiet=True) as shown:
        clock[0] += 100.0
        shown.step("latency dram", 0.5)
    assert capsys.readouterr().err == ""
