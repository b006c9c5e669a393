"""From flags to plans: what several measuring verbs decide the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.errors import BadInputError, MachineError
from nearfar.units import MIB, format_size, parse_cpus, parse_size

if TYPE_CHECKING:
    from nearfar.cli.recording import Recording
    from nearfar.machine.model import Machine
    from nearfar.measure.arrays import ArrayPlan
    from nearfar.measure.study import StudyPlan


def chosen_cpus(machine: Machine, wanted: str | None) -> list[int]:
    """The processors of --cpus, or all usable ones, one of each core first."""
    if wanted is None:
        return machine.cores_first()
    cpus = parse_cpus(wanted)
    usable = machine.usable_cpus()
    missing = [str(cpu) for cpu in cpus if cpu not in usable]
    if missing:
        raise MachineError(
            f"this process may not use processor {', '.join(missing)}",
            f"choose among {', '.join(map(str, usable))}",
        )
    return cpus


def last_cache(recording: Recording, cpu: int) -> int:
    """The effective last cache, probed in a few seconds."""
    from nearfar.measure.latency import quick_last_cache

    recording.session.progress.step("looking for the last cache", 0.0)
    return quick_last_cache(recording.session, cpu, recording.machine.last_cache_bytes())


def probe_plan(
    machine: Machine,
    tier: str,
    time_s: float,
    *,
    quick: bool,
    region_bytes: int | None,
    cpus: str | None,
    threads: list[int] | None,
    size: str | None,
    runs: int | None,
    warmup: int,
) -> StudyPlan:
    """The plan of ``nearfar probe``: one tier, all probes."""
    from nearfar.measure import arrays, latency
    from nearfar.measure.study import PROBE, QUICK, StudyPlan

    team = chosen_cpus(machine, cpus)
    asked = parse_size(size) if size else None
    if asked:
        arrays.check_room((tier, tier, tier), asked)
    largest = 32 * MIB if quick else latency.default_region(machine.last_cache_bytes())
    return StudyPlan(
        [tier], QUICK if quick else PROBE, time_s, team, region_bytes or largest,
        threads=chosen_threads(threads, len(team)), array_bytes=asked, runs=runs, warmup=warmup,
    )  # fmt: skip


def chosen_threads(wanted: list[int] | None, processors: int) -> tuple[int, ...]:
    """The counts of --threads, or those of the scaling curve."""
    from nearfar.measure.arrays import thread_counts

    if not wanted:
        return thread_counts(processors)
    if max(wanted) > 16 * processors:
        raise BadInputError(
            f"{max(wanted)} threads on {processors} processors measure the scheduler, not memory",
            f"use at most {16 * processors}",
        )
    return tuple(sorted(set(wanted)))


def array_plan(
    recording: Recording,
    kernels: tuple[str, ...],
    tiers: tuple[str, str, str],
    *,
    threads: list[int] | None,
    cpus: str | None,
    size: str | None,
    runs: int | None,
) -> tuple[ArrayPlan, int]:
    """The plan of array kernels, and the effective last cache it was made for.

    Raises BadInputError for arrays too small to split, MachineError where they do not fit.
    """
    from nearfar.measure import arrays
    from nearfar.measure.tiers import check_tiers

    check_tiers(tiers)
    team = chosen_cpus(recording.machine, cpus)
    counts = chosen_threads(threads, len(team))
    asked = parse_size(size) if size else None
    if asked:
        arrays.check_size(asked)
        arrays.check_room(tiers, asked)
    cache = last_cache(recording, team[0])
    array_bytes = asked or arrays.default_array_bytes(cache)
    arrays.check_room(tiers, array_bytes)
    if arrays.in_cache(array_bytes, cache):
        recording.session.progress.note(
            f"arrays of {format_size(array_bytes)} are under {arrays.LEAST_CACHES} x the last "
            "cache: these figures are the cache's, not memory's"
        )
    rounds = 1 if runs else arrays.ROUNDS
    return arrays.ArrayPlan(kernels, tiers, array_bytes, tuple(team), counts, rounds), cache
