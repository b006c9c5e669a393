"""Time of operations on PMDK's atomic hash map, from a replay of the map through a host's cache.

Equation: t = n·[t_cpu + m·L_far + v·t_walk + (v - m)·t_llc + p·L_write], where an operation makes v
visits (a look at a bucket's head, or at an entry; v = 1 + w for a get that walks w entries), m of
which wait for far memory, and ends p flushes with a fence (none in a get).
  v, m, p   replayed for each n (`native/cache/map_replay.hpp` says what), in one cache of L2 + L3
            bytes and 16 ways
  t_cpu     (1589 - 706) cycles of the host: cycles less stall cycles a get, counted on DRAM
  t_llc, t_walk   an L3 load, and a page walk, of the host file: one that the L3 serves, or where
            nearfar measured the host, one by the bytes that are walked over
Value: the mean over {flushes evict, flushes keep} × {LRU, random}, at the host's and the profile's
values. A head over two lines is one visit, for its two loads do not wait for each other.
Interval: the extremes over those four × profile ± 10 % × the host's ranges.
Source: PMDK 1.x, the code of the map and of its benchmark; t_cpu from the counters of the Nicosia
thesis. Nothing is fitted to times on far memory.
Limits: one thread; every visit walks the page table once; the value itself is not read; t_cpu of
another processor is assumed to be as many cycles. Insertions and removals: t_cpu is that of a get,
and the allocator's own lines are left out, so their times are lower bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from nearfar.model.host_costs import walks_of
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

_CYCLES = 1589.0 - 706.0
_WAYS = 16
_SEED = 1
#: Result bytes that the benchmark keeps for an operation: 40 to 64; little influence.
_RESULT_BYTES = 64
#: Bytes of a bucket; of an entry and its value, one allocation each.
_HEAD_BYTES, _ENTRY_BYTES = 80, 2 * 128
_VARIANTS = [(policy, evicts) for evicts in (True, False) for policy in ("lru", "random")]

_LIMITS = [
    "one thread; each visit walks the page table once; values are not read",
    "software cost: cycles less stalls a get, counted on DRAM on a Xeon Gold 5218R",
]
_LOWER_BOUND = (
    "a lower bound: the software cost is that of a get, and the allocator's own lines are left out"
)


@dataclass(frozen=True)
class Replayed:
    """Averages an operation; ``missed`` has one figure for each variant."""

    buckets: int
    visits: float
    walked: float
    fences: float
    missed: tuple[float, ...]


@dataclass(frozen=True)
class Costs:
    """Costs of an operation's parts, in seconds."""

    cpu: Constant
    far: Constant
    walk: Constant
    llc: Constant
    write: Constant | None


def replay(work: MapWork, cache_bytes: int) -> Replayed:
    """Replay the map. Raises NativeError for more operations than can be replayed."""
    from nearfar._native import replay_map

    counts = replay_map(
        work.operation,
        work.operations,
        work.value_bytes,
        _RESULT_BYTES,
        (cache_bytes, _WAYS),
        _VARIANTS,
        _SEED,
    )
    n = work.operations
    return Replayed(
        counts["buckets"],
        (counts["heads"] + counts["walked"]) / n,
        counts["walked"] / n,
        counts["fences"] / n,
        tuple(missed / n for missed in counts["missed"]),
    )


def costs(work: MapWork, far: Profile, host: Host, bytes_in_use: float) -> Costs:
    """Constants from the files. Raises BadInputError for a missing figure."""
    frequency = constant(host, "frequency_hz")
    writes = work.operation != "get"
    return Costs(
        Constant(_CYCLES / frequency.value, _CYCLES / frequency.high, _CYCLES / frequency.low),
        constant(far, "read_latency_ns", 1e-9, PROFILE_MARGIN),
        walks_of(host).of_one(bytes_in_use),
        constant(host, "l3_load_ns", 1e-9),
        constant(far, "write_latency_ns", 1e-9, PROFILE_MARGIN) if writes else None,
    )


def _bytes_in_use(work: MapWork, found: Replayed) -> float:
    """Bytes of all heads and entries with their values: the range of page walks."""
    return found.buckets * _HEAD_BYTES + work.operations * _ENTRY_BYTES


def _parts(found: Replayed, missed: float, paid: tuple[float, ...]) -> dict[str, float]:
    """Seconds an operation: software, far memory, walks, cache, flushes."""
    cpu, far, walk, llc, write = paid
    return {
        "cpu": cpu,
        "far": missed * far,
        "walk": found.visits * walk,
        "llc": (found.visits - missed) * llc,
        "write": found.fences * write,
    }


def _extremes(found: Replayed, paid: Costs) -> tuple[float, float]:
    """Minimum and maximum of an operation's time, over variants and ranges of all constants."""
    known = [paid.cpu, paid.far, paid.walk, paid.llc, paid.write or Constant(0.0, 0.0, 0.0)]
    times = [
        sum(_parts(found, missed, corner).values())
        for corner in product(*((c.low, c.high) for c in known))
        for missed in found.missed
    ]
    return min(times), max(times)


def predict(work: MapWork, far: Profile, host: Host) -> MapPrediction:
    """Time of all operations. Raises BadInputError if profile or host lack a figure."""
    cache_bytes = int(host.scalar("l2_bytes") + host.scalar("l3_bytes"))
    found = replay(work, cache_bytes)
    paid = costs(work, far, host, _bytes_in_use(work, found))
    missed = sum(found.missed) / len(found.missed)
    write = paid.write.value if paid.write else 0.0
    each = _parts(
        found, missed, (paid.cpu.value, paid.far.value, paid.walk.value, paid.llc.value, write)
    )
    n = work.operations
    low, high = _extremes(found, paid)
    reading = work.operation == "get"
    return MapPrediction(
        operation=work.operation,
        model="replay",
        operations=n,
        value_bytes=work.value_bytes,
        calibration_level=0,
        calibration=f"0, {CALIBRATION_LEVELS[0]}",
        terms=_terms(found, missed, {name: n * s for name, s in each.items()}, reading),
        limits=_LIMITS if reading else [*_LIMITS, _LOWER_BOUND],
        **modelled(
            {"time_s": (n * sum(each.values()), n * low, n * high)},
            samples=0,
            note="replay; interval: flushes, replacement, profile ± 10 %, host ranges",
        ),
    )


def _terms(found: Replayed, missed: float, shares: dict[str, float], reading: bool) -> list[Term]:
    least, most = min(found.missed), max(found.missed)
    times = [
        time_term("software", shares["cpu"], "n · t_cpu"),
        time_term("far memory", shares["far"], "n · m · read latency"),
        time_term("page walks", shares["walk"], "n · v · t_walk"),
        time_term("cache hits", shares["llc"], "n · (v - m) · t_llc"),
    ]
    if not reading:
        times.append(time_term("flushes", shares["write"], "n · p · write latency"))
    plain = [
        Term(name="chain walked w", value=found.walked, unit="ratio", note="entries an operation"),
        Term(name="visits v", value=found.visits, unit="ratio", note="heads and entries"),
        Term(
            name="missed m",
            value=missed,
            unit="ratio",
            note=f"{least:.3f} to {most:.3f} over flushes and replacement",
        ),
        Term(name="buckets", value=found.buckets, unit="count", note="at the end"),
    ]
    if not reading:
        plain.append(Term(name="fences p", value=found.fences, unit="ratio", note="an operation"))
    return mark_binding(times + plain)
