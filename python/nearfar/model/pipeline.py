"""Near threads generate while far threads copy the last result to far memory and analyze it there.

Equation, for d near and v far threads, over all iterations:
  total     = max(generate, transfer + analyse)
  transfer  = 16·elements·iterations / H(v),  H the harmonic mean of both memories' copy speeds
  analyse   = analyse_near(v) + κ·M(v),  M = passes·8·elements·iterations / (1.5·copy_far(v))
  generate  = generate_near(d)·C(s / (1 - r)) / C(s)
A transfer reads 8 bytes and writes 8 for each element, and copy speeds count both. A copy moves 1.5
times the bytes it counts (write-allocate), so reading alone has 1.5 times its speed. C is the cycle
of a closed queue (`queueing`) with the time away fitted to generate_near, and s its floor; r is the
share of the common capacity that transfer and analysis take, σ·(volume / capacity) / total; the
capacity is the peak of the near curve. κ and σ are 1 unless a measured row calibrates them.
Source: the pipeline of the Oslo thesis; that both memories share a capacity is what its competition
tables show (near and far sum to the near memory's own peak). Reducing the server by the share that
others take is the shadow server of queueing theory.
Limits: near-only times and the calibration row are of the same elements and iterations; an
iteration's stages overlap perfectly, hand-over costs nothing. A far memory on channels of its own
shares less: calibrate. κ = 1 (far memory's time is added in full) is right for the published row
and for software that waits for its loads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from nearfar.errors import BadInputError
from nearfar.model import consistency, tables
from nearfar.model.curves import Curve
from nearfar.model.minimizing import minimum_between
from nearfar.model.queueing import cycle_over_threads, rising_root
from nearfar.model.results import (
    CALIBRATION_LEVELS,
    PipelinePrediction,
    PipelineSplit,
    Term,
    modelled,
)

CALIBRATION_COLUMNS = (
    "near_threads",
    "far_threads",
    "generate_s",
    "generate_idle_s",
    "transfer_s",
    "analyse_s",
    "transfer_idle_s",
    "total_s",
)
ELEMENT_BYTES = 8
PASSES = 5
#: Bytes that a copy moves over those that it counts.
WRITE_ALLOCATE = 1.5
_UNCALIBRATED = "near-only analysis as given, sharing assumed"
_MAX_TAKEN = 0.95
_ROUNDING = 0.995


@dataclass(frozen=True)
class Work:
    """Amount of generated, moved and analyzed data."""

    elements: int
    iterations: int

    @property
    def transfer_bytes(self) -> float:
        """Transferred bytes as copy speeds count: read and written."""
        return 2.0 * ELEMENT_BYTES * self.elements * self.iterations

    @property
    def analysis_bytes(self) -> float:
        """Analyzed bytes as copy speeds count, for all passes: reads have no write-allocate."""
        return PASSES * ELEMENT_BYTES * self.elements * self.iterations / WRITE_ALLOCATE


@dataclass(frozen=True)
class Calibration:
    """κ and σ, and the number of rows behind them."""

    exposed: float = 1.0
    sharing: float = 1.0
    rows: int = 0


@dataclass(frozen=True)
class MeasuredRow:
    """One measured run, seconds over all iterations."""

    near_threads: int
    far_threads: int
    generate_s: float
    transfer_s: float
    analyse_s: float
    total_s: float


@dataclass(frozen=True)
class Inputs:
    """All measured inputs of a prediction; speeds in bytes/s."""

    near_copy: Curve
    far_copy: Curve
    generate: Curve
    analyse: Curve
    work: Work

    @cached_property
    def capacity(self) -> float:
        """Combined bytes/s of both memories."""
        return max(self.near_copy.points.values())

    @cached_property
    def floor_s(self) -> float:
        """Generation time limited by capacity alone."""
        return min(self.generate.points.values())

    @cached_property
    def away_s(self) -> float:
        """Time of one thread outside memory, by least squares of logarithms over all points."""

        def off(away: float) -> float:
            return sum(
                math.log(cycle_over_threads(away, self.floor_s, t) / s) ** 2
                for t, s in self.generate.points.items()
            )

        longest = max(t * s for t, s in self.generate.points.items())
        return minimum_between(off, 0.0, longest)

    @property
    def taken_s(self) -> float:
        """Seconds of the shared capacity that transfer and analysis need."""
        return (self.work.transfer_bytes + self.work.analysis_bytes) / self.capacity

    def mixed_copy(self, threads: int) -> float:
        """Bytes/s of copies from near to far."""
        return 2 / (1 / self.near_copy.at(threads) + 1 / self.far_copy.at(threads))

    def far_memory_s(self, threads: int) -> float:
        """Seconds of far memory for the passes of the analysis."""
        return self.work.analysis_bytes / self.far_copy.at(threads)


# --- stages ----------------------------------------------------------------------------------


def transfer_s(inputs: Inputs, threads: int) -> float:
    """Seconds of all transfers; no fitted parameter."""
    return inputs.work.transfer_bytes / inputs.mixed_copy(threads)


def _generate_concurrently(inputs: Inputs, threads: int, taken: float) -> float:
    """Seconds of generation when the far side takes this fraction of the capacity."""
    slowed = cycle_over_threads(inputs.away_s, inputs.floor_s / (1 - taken), threads)
    alone = cycle_over_threads(inputs.away_s, inputs.floor_s, threads)
    return inputs.generate.at(threads) * slowed / alone


def _taken(inputs: Inputs, sharing: float, total_s: float) -> float:
    return min(_MAX_TAKEN, sharing * inputs.taken_s / total_s)


def generate_s(inputs: Inputs, threads: int, far_s: float, sharing: float) -> float:
    """Seconds of generation, which sets the total that its own slowdown depends on."""

    def at(total_s: float) -> float:
        return _generate_concurrently(inputs, threads, _taken(inputs, sharing, total_s))

    shortest = max(inputs.generate.at(threads), far_s)
    if at(shortest) <= shortest:
        return at(shortest)
    return rising_root(lambda total: total - at(total), shortest, at(shortest))


# --- calibration -----------------------------------------------------------------------------


def read_calibration(path: str) -> MeasuredRow:
    """The one row of CAL.csv. Raises BadInputError that names the cell."""
    rows = tables.read_rows(path, CALIBRATION_COLUMNS)
    if len(rows) > 1:
        rows[1].refuse("near_threads", "a second row, and one calibrates")
    row = rows[0]
    for column in ("generate_idle_s", "transfer_idle_s"):
        row.number_of(column, zero_allowed=True)
    measured = MeasuredRow(
        row.count_of("near_threads"),
        row.count_of("far_threads"),
        *(row.number_of(c) for c in ("generate_s", "transfer_s", "analyse_s", "total_s")),
    )
    longest = max(measured.generate_s, measured.transfer_s + measured.analyse_s)
    if measured.total_s < _ROUNDING * longest:
        row.refuse(
            "total_s", f"{measured.total_s:g} s is less than its longer side's {longest:g} s"
        )
    return measured


def calibrate(inputs: Inputs, row: MeasuredRow) -> Calibration:
    """κ from the analysis, σ from the generation. Raises BadInputError for an impossible row."""
    alone = inputs.analyse.at(row.far_threads)
    if row.analyse_s < alone:
        raise BadInputError(
            f"the calibration row analyzes in {row.analyse_s:g} s in far memory, less than the "
            f"{alone:g} s that {row.far_threads} threads need in near memory",
            "give near-only times and a row of the same elements and iterations",
        )
    taken = 0.0
    if row.generate_s > inputs.generate.at(row.near_threads):
        taken = rising_root(
            lambda r: _generate_concurrently(inputs, row.near_threads, r) - row.generate_s,
            0.0,
            _MAX_TAKEN,
        )
    return Calibration(
        (row.analyse_s - alone) / inputs.far_memory_s(row.far_threads),
        taken * row.total_s / inputs.taken_s,
        rows=1,
    )


def inconsistencies(inputs: Inputs, row: MeasuredRow) -> list[str]:
    """Notes on a calibration row whose transfer does not fit the curves."""
    elements = float(inputs.work.elements) * inputs.work.iterations
    found = consistency.transfer_volume(
        row.transfer_s, elements, inputs.mixed_copy(row.far_threads), 2 * ELEMENT_BYTES
    )
    return [found] if found else []


# --- predicting ------------------------------------------------------------------------------


def predict(
    inputs: Inputs, threads: int, calibration: Calibration | None = None
) -> PipelinePrediction:
    """Every split of the threads, and the best. Raises BadInputError under two threads."""
    if threads < 2:
        raise BadInputError("a pipeline needs two threads", "give --threads 2 or more")
    calibration = calibration or Calibration()
    splits = [_split(inputs, d, threads - d, calibration, threads) for d in range(1, threads)]
    best = min(splits, key=lambda split: split.total_time_s)
    for split in splits:
        split.regret = split.total_time_s / best.total_time_s - 1
    level, words = (2, CALIBRATION_LEVELS[2]) if calibration.rows else (0, _UNCALIBRATED)
    return PipelinePrediction(
        best_near_threads=best.near_threads,
        splits=splits,
        calibration_level=level,
        calibration=f"{level}: {words}",
        terms=_terms(inputs, calibration, best),
        limits=[
            "generate_s and analyse_s of --generate, and any calibration row, are not scaled: they "
            f"must be times of these {inputs.work.elements} elements and {inputs.work.iterations} "
            "iterations."
        ],
    )


def _split(
    inputs: Inputs, near: int, far: int, calibration: Calibration, threads: int
) -> PipelineSplit:
    rough = inputs.near_copy.roughness(threads) + inputs.far_copy.roughness(threads)
    transfer = transfer_s(inputs, far)
    alone, memory = inputs.analyse.at(far), inputs.far_memory_s(far)
    analyse = alone + calibration.exposed * memory
    generate = generate_s(inputs, near, transfer + analyse, calibration.sharing)
    stages = {
        "transfer_time_s": _spread(transfer, rough),
        "analyse_time_s": (analyse, *_analysis_ends(alone, memory, calibration, rough)),
        "generate_time_s": (generate, *_generation_ends(inputs, near, generate, calibration)),
    }
    far_side = [
        a + b for a, b in zip(stages["transfer_time_s"], stages["analyse_time_s"], strict=True)
    ]
    total = [max(g, f) for g, f in zip(stages["generate_time_s"], far_side, strict=True)]
    return PipelineSplit(
        near_threads=near,
        far_threads=far,
        binds="generate" if generate > far_side[0] else "transfer + analyse",
        regret=0.0,
        **modelled(
            {**stages, "total_time_s": (total[0], total[1], total[2])},
            samples=len(inputs.generate.points) + calibration.rows,
            note="over all iterations",
        ),
    )


def _spread(value: float, half_width: float) -> tuple[float, float, float]:
    return value, value * math.exp(-half_width), value * math.exp(half_width)


def _analysis_ends(
    alone: float, memory: float, calibration: Calibration, rough: float
) -> tuple[float, float]:
    """Far memory overlapped or added in full, unless calibrated by a row; and curve roughness."""
    slow = alone + calibration.exposed * memory * math.exp(rough)
    if calibration.rows:
        return alone + calibration.exposed * memory * math.exp(-rough), slow
    return max(alone, memory * math.exp(-rough)), slow


def _generation_ends(
    inputs: Inputs, threads: int, generate: float, calibration: Calibration
) -> tuple[float, float]:
    """From generation alone to generation plus all traffic of the far side."""
    alone = inputs.generate.at(threads)
    stolen = _taken(inputs, calibration.sharing, generate)
    return alone, max(generate, alone + inputs.floor_s * stolen / (1 - stolen))


def _terms(inputs: Inputs, calibration: Calibration, best: PipelineSplit) -> list[Term]:
    far = best.far_threads
    taken = _taken(inputs, calibration.sharing, best.total_time_s)
    return [
        Term(name="generation alone", value=inputs.generate.at(best.near_threads), unit="s"),
        Term(
            name="generation", value=best.generate_time_s, unit="s", binds=best.binds == "generate"
        ),
        Term(name="capacity that the far side takes", value=taken, unit="ratio"),
        Term(
            name="sharing of capacity, σ",
            value=calibration.sharing,
            unit="ratio",
            note="calibrated" if calibration.rows else "assumed: all of it",
        ),
        Term(name="copy, near to far", value=inputs.mixed_copy(far), unit="bytes/s"),
        Term(name="analysis in near memory", value=inputs.analyse.at(far), unit="s"),
        Term(name="far memory's time in the analysis", value=inputs.far_memory_s(far), unit="s"),
        Term(
            name="share of it that shows, κ",
            value=calibration.exposed,
            unit="ratio",
            note="calibrated" if calibration.rows else "assumed: all of it",
        ),
        Term(
            name="transfer + analysis",
            value=best.transfer_time_s + best.analyse_time_s,
            unit="s",
            binds=best.binds != "generate",
        ),
    ]
