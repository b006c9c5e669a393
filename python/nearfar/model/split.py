"""Rows of a stencil split between two memories, such that both sides finish together.

Equation: for a thread of either side, an element costs
  max(t_soft, m)    while rows stay in its cache,    m = 2·element_bytes·φ / x
  t_soft + m        on the far side when they do not (the loads wait, nothing hides them)
with x the thread's copy speed concurrent with the other side (`contention`, far-far rows) and φ the
traffic factor (`layer_condition`). A side's time is its elements over its threads times that; the
total is the slower side's, times the skew of a measured row (total over slower side).
`oslo` keeps the two equations of the thesis: E·16 / B_near and E·16 / B_far, nothing else.
Source: Oslo thesis, its split formula; extended by traffic and by the accessor's software cost,
which dominates its far side.
Calibration: one row of the same version gives t_soft of both sides and the skew, so the row itself
is reproduced exactly; several rows are averaged. A side that ran faster than its memory term lowers
that term instead.
Limits: t_soft is one number for all sizes and thread counts. Totals of the published 160 GB case
contain up to 29 % over the slower side that no model here explains.
Without calibration the software cost is unknown, and times are lower bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from nearfar.errors import BadInputError
from nearfar.model import competition, consistency, layer_condition, tables
from nearfar.model.competition import Competition
from nearfar.model.contention import SideSpeed
from nearfar.model.layer_condition import Traffic
from nearfar.model.results import CALIBRATION_LEVELS, SplitPrediction, Term, modelled
from nearfar.model.split_cost import Calibration, Cost
from nearfar.records.choices import SplitModel, StencilVersion

COLUMNS = ("rows", "cols", "far_rows", "near_threads", "far_threads", "near_s", "far_s", "total_s")
#: A total below the slower side, beyond the rounding of a printed table, is an error.
_ROUNDING = 0.995
UNEXPLAINED = (
    "Totals of the published 160 GB case hold something no model explains (up to 29 % over the "
    "slower side)."
)


@dataclass(frozen=True)
class CacheShare:
    """A thread's part of the caches: its L2, and the L3 divided by all running threads."""

    l2_bytes: float
    l3_bytes: float
    #: of the L3, whose share is the larger one
    ways: int

    def of_thread(self, threads: int) -> float:
        """Cache bytes of one of ``threads``."""
        return self.l2_bytes + self.l3_bytes / threads


@dataclass(frozen=True)
class Array:
    """The array of the stencil."""

    rows: int
    cols: int
    element_bytes: int


@dataclass(frozen=True)
class MeasuredRow:
    """One measured run, times of a sweep."""

    array: Array
    far_rows: int
    near_threads: int
    far_threads: int
    near_s: float
    far_s: float
    total_s: float


@dataclass(frozen=True)
class Machine:
    """Shared inputs of predictions: the contention model and the caches."""

    contention: Competition
    cache: CacheShare


# --- calibration -----------------------------------------------------------------------------


def read_calibration(path: str, element_bytes: int) -> list[MeasuredRow]:
    """Rows of CAL.csv. Raises BadInputError that names the cell."""
    rows = tables.without_repeats(tables.read_rows(path, COLUMNS), COLUMNS[:5], COLUMNS[5:])
    return [_measured(row, element_bytes) for row in rows]


def _measured(row: tables.Row, element_bytes: int) -> MeasuredRow:
    array = Array(row.count_of("rows"), row.count_of("cols"), element_bytes)
    far_rows = row.count_of("far_rows", zero_allowed=True)
    if not 0 < far_rows < array.rows:
        row.refuse(
            "far_rows",
            f"{far_rows} of {array.rows} rows leaves a side without work, and calibrates nothing",
        )
    near_s, far_s, total_s = (row.number_of(c) for c in ("near_s", "far_s", "total_s"))
    if total_s < _ROUNDING * max(near_s, far_s):
        row.refuse(
            "total_s", f"{total_s:g} s is less than the slower side's {max(near_s, far_s):g}"
        )
    return MeasuredRow(
        array,
        far_rows,
        row.count_of("near_threads"),
        row.count_of("far_threads"),
        near_s,
        far_s,
        total_s,
    )


def calibrate(machine: Machine, measured: Sequence[MeasuredRow]) -> Calibration:
    """Calibrate from rows. Raises BadInputError for thread counts outside the contention model."""
    costs = [_costs(machine, row) for row in measured]
    return Calibration(
        _mean([near for near, _ in costs]),
        _mean([far for _, far in costs]),
        fmean(row.total_s / max(row.near_s, row.far_s) for row in measured),
        rows=len(measured),
        level=competition.level(machine.contention),
    )


def _costs(machine: Machine, row: MeasuredRow) -> tuple[Cost, Cost]:
    near, far = _sides(machine, row.array, row.near_threads, row.far_threads)
    near_elements = (row.array.rows - row.far_rows) * row.array.cols
    far_elements = row.far_rows * row.array.cols
    return (
        Cost.measured(row.near_s * row.near_threads / near_elements, near.memory_s, waits=False),
        Cost.measured(
            row.far_s * row.far_threads / far_elements, far.memory_s, waits=far.traffic.broken
        ),
    )


def _mean(costs: Sequence[Cost]) -> Cost:
    return Cost(fmean(c.software_s for c in costs), fmean(c.memory_scale for c in costs))


def inconsistencies(machine: Machine, measured: Sequence[MeasuredRow]) -> list[str]:
    """Notes on calibration rows that contradict themselves or each other."""
    found = []
    cases = []
    for row in measured:
        near, far = competition.speeds(machine.contention, row.near_threads, row.far_threads)
        near_bandwidth = row.near_threads * near.value
        found.append(
            consistency.far_rows_against_formula(
                row.far_rows, row.array.rows, near_bandwidth, row.far_threads * far.value
            )
        )
        side, _ = _sides(machine, row.array, row.near_threads, row.far_threads)
        elements = (row.array.rows - row.far_rows) * row.array.cols
        moved = 2 * row.array.element_bytes * side.traffic.factor * elements
        cases.append((row.near_s, moved, near_bandwidth))
    found.append(consistency.times_over_size(cases))
    return [sentence for sentence in found if sentence]


# --- the two sides ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Side:
    """One side for one reading of cache and contention."""

    memory_s: float
    traffic: Traffic
    speed: float


def _side(array: Array, speed: float, traffic: Traffic) -> _Side:
    return _Side(2 * array.element_bytes * traffic.factor / speed, traffic, speed)


def _sides(
    machine: Machine, array: Array, near_threads: int, far_threads: int, reading: str = "value"
) -> tuple[_Side, _Side]:
    """Both sides; ``reading`` is value, or the fast or slow end of the interval."""
    pair = competition.speeds(machine.contention, near_threads, far_threads)
    share = machine.cache.of_thread(near_threads + far_threads)
    traffic = layer_condition.traffic(
        array.cols, array.element_bytes, int(share), machine.cache.ways
    )
    chosen = {"value": traffic.value, "fast": traffic.low, "slow": traffic.high}[reading]
    near, far = (_side(array, _reading(speed, reading), chosen) for speed in pair)
    return near, far


def _reading(speed: SideSpeed, reading: str) -> float:
    return {"value": speed.value, "fast": speed.high, "slow": speed.low}[reading]


@dataclass(frozen=True)
class _Times:
    """Seconds of one sweep."""

    near: float
    far: float
    total: float


@dataclass(frozen=True)
class _Rates:
    """Seconds for a row of the array on either side, with all threads of the side running."""

    near: float
    far: float
    skew: float

    def times(self, rows: int, far_rows: int) -> _Times:
        near, far = (rows - far_rows) * self.near, far_rows * self.far
        return _Times(near, far, self.skew * max(near, far))

    def balanced(self, rows: int) -> int:
        """Far rows that minimize the time of the slower side."""
        even = rows * self.near / (self.near + self.far)
        below = math.floor(even)
        return min((below, min(below + 1, rows)), key=lambda r: self.times(rows, r).total)


def _rates(
    array: Array, near: _Side, far: _Side, threads: tuple[int, int], calibration: Calibration
) -> _Rates:
    near_s = calibration.near.of_element(near.memory_s, waits=False)
    far_s = calibration.far.of_element(far.memory_s, waits=far.traffic.broken)
    return _Rates(
        array.cols / threads[0] * near_s, array.cols / threads[1] * far_s, calibration.skew
    )


# --- predicting ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """The requested split: far rows may be open, and threads given as a pair or as a sum."""

    array: Array
    version: StencilVersion
    threads: Sequence[tuple[int, int]]
    far_rows: int | None = None
    model: SplitModel = "nearfar"


def splits_of(threads: int) -> list[tuple[int, int]]:
    """All pairs of near and far threads with this sum. Raises BadInputError under two threads."""
    if threads < 2:
        raise BadInputError("a split needs two threads", "give --threads 2 or more")
    return [(threads - far, far) for far in range(1, threads)]


def predict(
    machine: Machine, question: Question, calibration: Calibration | None = None
) -> SplitPrediction:
    """The best of the requested threads and rows. Raises BadInputError for rows out of range."""
    rows = question.array.rows
    if question.far_rows is not None and not 0 <= question.far_rows <= rows:
        raise BadInputError(
            f"--far-rows {question.far_rows} of an array of {rows} rows", f"give 0 to {rows}"
        )
    calibration = calibration or Calibration()
    if question.model == "oslo":
        calibration = Calibration()
    best = min(_answers(machine, question, calibration), key=lambda answer: answer.times.total)
    return _prediction(machine, question, calibration, best)


@dataclass(frozen=True)
class _Answer:
    threads: tuple[int, int]
    far_rows: int
    times: _Times
    near: _Side
    far: _Side


def _asked(
    machine: Machine, question: Question, threads: tuple[int, int], reading: str
) -> tuple[_Side, _Side]:
    near, far = _sides(machine, question.array, *threads, reading)
    if question.model == "oslo":
        copy = Traffic(1.0)
        return _side(question.array, near.speed, copy), _side(question.array, far.speed, copy)
    return near, far


def _answers(machine: Machine, question: Question, calibration: Calibration) -> Iterator[_Answer]:
    for threads in question.threads:
        near, far = _asked(machine, question, threads, "value")
        rates = _rates(question.array, near, far, threads, calibration)
        far_rows = question.far_rows
        if far_rows is None:
            far_rows = rates.balanced(question.array.rows)
        times = rates.times(question.array.rows, far_rows)
        yield _Answer(threads, far_rows, times, near, far)


def _interval(
    machine: Machine, question: Question, calibration: Calibration, best: _Answer
) -> tuple[_Times, _Times]:
    """Fast and slow end: policies and contention, and the scatter of a calibrated cost."""
    ends = []
    near_scatter, far_scatter = competition.half_widths(machine.contention)
    for reading, sign in (("fast", -1), ("slow", 1)):
        near, far = _asked(machine, question, best.threads, reading)
        spread = replace(
            calibration,
            near=_scattered(calibration.near, sign * near_scatter),
            far=_scattered(calibration.far, sign * far_scatter),
        )
        rates = _rates(question.array, near, far, best.threads, spread)
        ends.append(rates.times(question.array.rows, best.far_rows))
    return ends[0], ends[1]


def _scattered(cost: Cost, log_change: float) -> Cost:
    return replace(cost, software_s=cost.software_s * math.exp(log_change))


def _prediction(
    machine: Machine, question: Question, calibration: Calibration, best: _Answer
) -> SplitPrediction:
    low, high = _interval(machine, question, calibration, best)
    rows = competition.rows(machine.contention)
    times = best.times
    return SplitPrediction(
        version=question.version,
        model=question.model,
        far_rows=best.far_rows,
        near_threads=best.threads[0],
        far_threads=best.threads[1],
        calibration_level=calibration.level,
        calibration=f"{calibration.level}: {CALIBRATION_LEVELS[calibration.level]}; competition "
        f"from {rows} measured row{'s' * (rows > 1)}",
        terms=_terms(question, calibration, best),
        limits=_limits(calibration),
        **modelled(
            {
                "near_time_s": (times.near, low.near, high.near),
                "far_time_s": (times.far, low.far, high.far),
                "total_time_s": (times.total, low.total, high.total),
            },
            samples=rows + calibration.rows,
            note="one sweep",
        ),
    )


def _limits(calibration: Calibration) -> list[str]:
    if calibration.level:
        return [UNEXPLAINED]
    return [
        "No software cost is known: times are lower bounds, and the interval holds memory alone.",
        UNEXPLAINED,
    ]


def _terms(question: Question, calibration: Calibration, best: _Answer) -> list[Term]:
    terms = []
    pairs = (("near", best.near, calibration.near, False), ("far", best.far, calibration.far, True))
    slower = "near" if best.times.near > best.times.far else "far"
    for (name, side, cost, can_wait), threads in zip(pairs, best.threads, strict=True):
        memory = cost.memory_scale * side.memory_s
        waits = cost.adds or (can_wait and side.traffic.broken and cost.software_s > 0)
        decides = name == slower
        terms += [
            Term(name=f"{name} copy bandwidth", value=threads * side.speed, unit="bytes/s"),
            Term(
                name=f"{name} traffic factor",
                value=side.traffic.factor,
                unit="ratio",
                note="rows do not stay in cache" if side.traffic.broken else "",
            ),
            Term(
                name=f"{name} memory, an element a thread",
                value=memory,
                unit="s",
                binds=decides and (waits or memory >= cost.software_s),
            ),
            Term(
                name=f"{name} software, an element a thread",
                value=cost.software_s,
                unit="s",
                binds=decides and (waits or cost.software_s > memory),
            ),
        ]
    terms.append(Term(name="skew, total over slower side", value=calibration.skew, unit="ratio"))
    return terms
