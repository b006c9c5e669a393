"""The pipeline on the machine that its stages were measured on, each alone.

Equation, for d near and v far threads, over all iterations:
  total    = max(generate, transfer + analyse)
  generate = as in `pipeline`, slowed by the share of near copies' capacity that the far side takes
  transfer = 16·elements·iterations / min(copies from near to far, near copies), both alone
  analyse  = max(passes·8·elements·iterations / reads of far memory, analyse_near(v)), both alone
Source: that of `pipeline`. Instead of the harmonic mean of two speeds, the copy's own; instead of
adding far memory's time to the analysis, the longer of both: loads in sequence are fetched ahead.
That the generation does not slow the far side is what the published row shows.
Limits: hand-over costs nothing. Where software waits for its loads, far memory's time comes on top
of its own: the interval's upper end, and what the published row shows too.
"""

from __future__ import annotations

from dataclasses import dataclass

from nearfar.model import pipeline
from nearfar.model.curves import Curve
from nearfar.model.pipeline import ELEMENT_BYTES, PASSES, WRITE_ALLOCATE, Work


@dataclass(frozen=True)
class Alone:
    """Measurements of each stage alone.

    Seconds of all iterations by near threads alone, at the threads of either side and of both;
    ``copy`` in bytes/s; ``transfer`` and ``read`` are bytes/s of the far threads.
    """

    generate: Curve
    analyse: Curve
    copy: Curve
    transfer: float
    read: float
    work: Work


@dataclass(frozen=True)
class Times:
    """Seconds of all iterations."""

    generate: float
    transfer: float
    analyse: float

    @property
    def total(self) -> float:
        """The time of the slower side."""
        return max(self.generate, self.transfer + self.analyse)


def predict(alone: Alone, near_threads: int, far_threads: int, *, waits: bool = False) -> Times:
    """Times of a split; ``waits``: the analysis waits for each load of far memory.

    Raises BadInputError for unmeasured thread counts.
    """
    work = alone.work
    transfer = work.transfer_bytes / min(alone.transfer, alone.copy.at(far_threads))
    own = alone.analyse.at(far_threads)
    far = float(PASSES) * ELEMENT_BYTES * work.elements * work.iterations / alone.read
    analyse = own + far if waits else max(own, far)
    inputs = pipeline.Inputs(alone.copy, alone.copy, alone.generate, alone.analyse, work)
    generate = pipeline.generate_s(inputs, near_threads, transfer + analyse, sharing=1.0)
    return Times(generate, transfer, analyse)


def of_published(inputs: pipeline.Inputs, far_threads: int) -> Alone:
    """Published curves as if they had been measured here: reads at 1.5 times a copy's speed."""
    return Alone(
        inputs.generate,
        inputs.analyse,
        inputs.near_copy,
        inputs.mixed_copy(far_threads),
        WRITE_ALLOCATE * inputs.far_copy.at(far_threads),
        inputs.work,
    )
