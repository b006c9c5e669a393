"""Pauses of the samples of running services."""

from __future__ import annotations

from itertools import count

import pytest

from nearfar.sampling import pauses
from nearfar.sampling.pauses import Pauses, fraction_for


class Clock:
    """A sampler that notes its pauses."""

    def __init__(self) -> None:
        self.paused: list[bool] = []

    def pause(self, on: bool) -> None:
        self.paused.append(on)

    def programs(self) -> list[tuple[int, bytes, int]]:
        return [(1, b"service", 10)]


def test_a_program_that_rarely_waits_is_always_sampled() -> None:
    assert fraction_for(0, 0) == 1
    assert fraction_for(1_000, 10**9) == 1


def test_the_more_often_a_service_wakes_the_less_it_is_sampled() -> None:
    fractions = [fraction_for(wake_ups, 10**9) for wake_ups in (10_000, 40_000, 80_000, 10**7)]
    assert fractions == sorted(fractions, reverse=True)
    assert fractions[2] == pytest.approx(0.3, abs=0.05)
    assert fractions[3] == 0.1


def test_the_sampled_fraction_is_that_of_the_wake_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, wakes = count(), count(0, 50_000)
    monkeypatch.setattr("time.monotonic", lambda: float(next(seconds)))
    monkeypatch.setattr(pauses, "_wake_ups", lambda _: (n := next(wakes), n * 20_000))
    clock = Clock()
    made = Pauses(clock)  # type: ignore[arg-type]
    for _ in range(4_000):
        made.step()
        next(seconds)
    assert 0.2 < made.fraction() < 0.8
    assert clock.paused[:2] == [True, False]
    assert all(a != b for a, b in zip(clock.paused, clock.paused[1:], strict=False))
