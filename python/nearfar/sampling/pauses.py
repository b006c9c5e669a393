"""Pauses of the samples of a running service, so that it loses less than 3 % of its CPU time.

The clock that samples are taken by is a timer which the kernel sets anew each time that a thread
gets a CPU. A service that waits for requests gets one tens of thousands of times a second, and then
this costs more than the samples. While the clock is paused it costs nothing.
"""

from __future__ import annotations

import contextlib
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nearfar._native import Sampler

#: CPU time that the samples may cost, as a fraction, and the cost of one wake-up with the clock on:
#: benchmarks/results/sampling.md has the measurement.
_COST, _WAKE_UP_NS = 0.015, 600
_MIN_FRACTION = 0.1
#: Steps between two looks at the threads.
_LOOK_STEPS = 8


def fraction_for(wake_ups: int, cpu_ns: int) -> float:
    """Fraction of the time to be sampled. ``wake_ups``: threads got a CPU, in so much CPU time."""
    cost = wake_ups * _WAKE_UP_NS / max(cpu_ns, 1)
    return max(min(1.0, _COST / cost), _MIN_FRACTION) if cost else 1.0


class Pauses:
    """Stretches of time with and without samples. Each begins and ends by chance, so that no period
    of the program's own is met always or never."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._random = random.Random(1)
        self._wanted = 1.0
        self._steps = 0
        self._seen = (0, 0)
        self._on = True
        self._begin = self._since = time.monotonic()
        self._sampled_s = 0.0

    def step(self) -> None:
        """Draw whether to sample until the next step."""
        if self._steps % _LOOK_STEPS == 0:
            self._look()
        self._steps += 1
        on = self._random.random() < self._wanted
        if on != self._on:
            self._sampler.pause(not on)
            self._account()
            self._on = on

    def fraction(self) -> float:
        """Of the time so far that was sampled."""
        self._account()
        return self._sampled_s / max(self._since - self._begin, 1e-9)

    def _account(self) -> None:
        now = time.monotonic()
        if self._on:
            self._sampled_s += now - self._since
        self._since = now

    def _look(self) -> None:
        seen = _wake_ups({process for process, _, _ in self._sampler.programs()})
        wake_ups, cpu_ns = (now - then for now, then in zip(seen, self._seen, strict=True))
        if self._seen != (0, 0) and wake_ups >= 0 and cpu_ns > 0:  # threads that end take theirs
            self._wanted = fraction_for(wake_ups, cpu_ns)
        self._seen = seen


def _wake_ups(processes: set[int]) -> tuple[int, int]:
    """How often threads of processes got a CPU, and their CPU time in ns (proc(5), schedstat)."""
    wake_ups = cpu_ns = 0
    for process in processes:
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{process}/task").iterdir():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    fields = (thread / "schedstat").read_text().split()
                    cpu_ns += int(fields[0])
                    wake_ups += int(fields[2])
    return wake_ups, cpu_ns
