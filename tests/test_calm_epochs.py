"""Repeats that other work disturbed are repeated, and do not count if calm ones replace them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from nearfar.measure import latency, session
from nearfar.measure.progress import silent
from nearfar.measure.session import Effort, Samples, Session
from nearfar.noise import Lap, Watch

if TYPE_CHECKING:
    from nearfar._native import Usage


def usage(share: float) -> Usage:
    return {
        "cpu_ns": int(share * 1e6),
        "wall_ns": 1_000_000,
        "minor_faults": 0,
        "major_faults": 0,
        "involuntary_switches": 0,
    }


@dataclass(frozen=True)
class Epochs:
    """A plan of one point; each epoch has the next values, with the CPU share of each."""

    values: Iterator[Sequence[tuple[float, float]]] = field(compare=False)

    @property
    def grid(self) -> Sequence[str]:
        return ["point"]

    def epoch(self, seed: int) -> Samples[str]:
        samples: Samples[str] = Samples()
        for value, share in next(self.values):
            samples.add("point", value, [usage(share)])
        return samples

    def smaller(self) -> None:
        return None


@pytest.fixture
def laps(monkeypatch: pytest.MonkeyPatch) -> list[Lap]:
    """The laps that the watch will return, in order; then calm ones."""
    given: list[Lap] = []
    monkeypatch.setattr(Watch, "lap", lambda _: given.pop(0) if given else Lap(1.0, 0.0, 0.0))
    monkeypatch.setattr(session, "is_calm_now", lambda: True)
    return given


def run(epochs: list[list[tuple[float, float]]], effort: Effort) -> tuple[list[float], Session]:
    with silent() as progress:
        one = Session("machine", 1, progress)
        samples, _ = one.repeat("series", "ns", Epochs(iter(epochs)), effort)
    return samples.series["point"], one


def test_disturbed_epochs_are_replaced_by_calm_ones(laps: list[Lap]) -> None:
    laps += [Lap(1.0, 2.0, 0.0)] * 2
    epochs = [[(90.0, 1.0)]] * 2 + [[(10.0, 1.0)]] * 20
    values, done = run(epochs, Effort(60.0, apart=False))
    assert set(values) == {10.0}
    assert len(values) >= 6
    (series,) = done.noise.verdict().judged
    assert series.set_aside == 2
    assert series.verdict == "steady"


def test_without_enough_calm_epochs_all_count(laps: list[Lap]) -> None:
    laps += [Lap(1.0, 2.0, 0.0)] * 40
    values, done = run([[(90.0, 1.0)]] * 40, Effort(60.0, apart=False))
    assert len(values) == 40
    assert done.noise.verdict().judged[0].verdict == "disturbed"


def test_a_given_number_of_runs_is_kept(laps: list[Lap]) -> None:
    laps += [Lap(1.0, 2.0, 0.0)] * 2
    values, _ = run([[(1.0, 1.0)]] * 8, Effort(60.0, epochs=8, apart=False))
    assert len(values) == 8


def test_repeats_of_preempted_threads_do_not_count(laps: list[Lap]) -> None:
    epochs = [[(10.0, 1.0), (30.0, 0.4), (12.0, 1.0)]] * 6
    values, done = run(epochs, Effort(60.0, apart=False))
    assert values == [11.0] * 6
    assert done.noise.verdict().least_cpu_share == 1.0


def test_edges_of_caches_are_where_the_latency_rises() -> None:
    curve = {4: 1.0, 8: 1.0, 16: 1.1, 32: 4.0, 64: 4.1, 128: 4.1}
    assert latency.cache_edges(curve) == {16, 32}
