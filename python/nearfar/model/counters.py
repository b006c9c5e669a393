"""Time of map gets from counters on DRAM: the counter model of the Nicosia thesis.

Equation: t = loads·r_load·L_read + stores·r_store·L_write + n·size / B_read + 854·n / f, with
  loads  = |4.966 n - 262902|     r_load  = |0.055 ln n - 0.242|     (of the last-level cache)
  stores = |6e-5 n - 7117|        r_store = |4e-8 n + 0.81|
  L_read, L_write, B_read of the far memory, f of the host; 854 instructions a get, one a cycle.
Source: the thesis' fits to counters of `map_get` on 1-byte values on DRAM, 2.1 GHz; published with
L_read 305 ns, L_write 90 ns, B_read 7.45 GB/s (profile ucy-optane, host xeon-5218r).
Limits: gets on that host alone; the fits hold for 10^4 to 10^7 gets, and a ratio over 1 is what the
formula says, not what a cache can do. The thesis states a mean error of 7.5 %; its own printed
table gives 8.07 %. Interval: the profile's figures ± 10 %, or their ranges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nearfar.model.map_work import (
    PROFILE_MARGIN,
    Constant,
    MapPrediction,
    MapWork,
    constant,
    mark_binding,
    time_term,
)
from nearfar.model.results import CALIBRATION_LEVELS, Term, modelled
from nearfar.records.profile import Host, Profile

_INSTRUCTIONS = 854.0
#: Range of operations of the published fits.
_FEWEST, _MOST = 10**4, 10**7
_LIMITS = [
    "a named model, kept as published: gets on the host of the Nicosia thesis",
    "the instructions take a cycle each, and nothing overlaps",
]


def counts(operations: int) -> dict[str, float]:
    """The published fits: loads, stores and their miss ratios."""
    n = float(operations)
    return {
        "loads": abs(4.966 * n - 262902),
        "stores": abs(6e-5 * n - 7117),
        "load_miss_ratio": abs(0.055 * math.log(n) - 0.242),
        "store_miss_ratio": abs(4e-8 * n + 0.81),
    }


def predict(work: MapWork, far: Profile, host: Host) -> MapPrediction:
    """Time of gets. Raises BadInputError if profile or host lack a figure."""
    counted = counts(work.operations)
    inputs = _inputs(work, counted, far, host)
    terms = [
        *inputs.terms(),
        *(Term(name=name, value=value, unit=_unit(name)) for name, value in counted.items()),
    ]
    time_s = sum(term.value for term in terms if term.unit == "s")
    return MapPrediction(
        operation=work.operation,
        model="counters",
        operations=work.operations,
        value_bytes=work.value_bytes,
        calibration_level=0,
        calibration=f"0, {CALIBRATION_LEVELS[0]}",
        terms=mark_binding(terms),
        limits=_LIMITS,
        warnings=_beyond(work.operations, counted),
        **modelled(
            {"time_s": (time_s, *inputs.ends())},
            samples=0,
            note="counter model as published; interval: profile ± 10 %",
        ),
    )


def _inputs(work: MapWork, counted: dict[str, float], far: Profile, host: Host) -> _Inputs:
    return _Inputs(
        load_misses=counted["loads"] * counted["load_miss_ratio"],
        store_misses=counted["stores"] * counted["store_miss_ratio"],
        moved_bytes=work.operations * work.value_bytes,
        instructions=_INSTRUCTIONS * work.operations,
        read=constant(far, "read_latency_ns", 1e-9, PROFILE_MARGIN),
        write=constant(far, "write_latency_ns", 1e-9, PROFILE_MARGIN),
        bandwidth=constant(far, "read_bandwidth_bytes_per_s", 1.0, PROFILE_MARGIN),
        frequency=constant(host, "frequency_hz"),
    )


@dataclass(frozen=True)
class _Inputs:
    """Counts, and the figures that each is multiplied with or divided by."""

    load_misses: float
    store_misses: float
    moved_bytes: float
    instructions: float
    read: Constant
    write: Constant
    bandwidth: Constant
    frequency: Constant

    def terms(self) -> list[Term]:
        """Parts of the time."""
        return [
            time_term(
                "loads that miss",
                self.load_misses * self.read.value,
                "loads · ratio · read latency",
            ),
            time_term(
                "stores that miss",
                self.store_misses * self.write.value,
                "stores · ratio · write latency",
            ),
            time_term(
                "values", self.moved_bytes / self.bandwidth.value, "n · size / read bandwidth"
            ),
            time_term("instructions", self.instructions / self.frequency.value, "854 n / f"),
        ]

    def ends(self) -> tuple[float, float]:
        """The shortest and the longest time in s within the ranges of the figures."""
        low = (
            self.load_misses * self.read.low
            + self.store_misses * self.write.low
            + self.moved_bytes / self.bandwidth.high
            + self.instructions / self.frequency.high
        )
        high = (
            self.load_misses * self.read.high
            + self.store_misses * self.write.high
            + self.moved_bytes / self.bandwidth.low
            + self.instructions / self.frequency.low
        )
        return low, high


def _beyond(operations: int, counted: dict[str, float]) -> list[str]:
    """Notes on operations outside the fits' range, and on ratios above one."""
    found = []
    if not _FEWEST <= operations <= _MOST:
        found.append(
            f"the published fit does not reach to {operations} operations: it was made from "
            f"{_FEWEST} to {_MOST}"
        )
    found += [
        f"the published fit does not hold at {operations} operations: {name} comes out as "
        f"{value:.3g}, and a ratio is at most 1"
        for name, value in counted.items()
        if _unit(name) == "ratio" and value > 1
    ]
    return found


def _unit(name: str) -> str:
    return "ratio" if name.endswith("ratio") else "count"
