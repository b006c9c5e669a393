"""Plans of measurements (not of placements): what the options of a verb ask to measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.errors import BadInputError, MachineError
from nearfar.units import format_size, parse_cpus, parse_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nearfar.machine.model import Machine
    from nearfar.measure.arrays import ArrayPlan
    from nearfar.measure.compete import CompetePlan, Split
    from nearfar.measure.maps import MapPlan
    from nearfar.measure.pipeline import PipelinePlan
    from nearfar.measure.stencil import StencilPlan
    from nearfar.measure.study_plan import StudyPlan
    from nearfar.measure.teams import Teams
    from nearfar.workflows.bench.compete import Copies
    from nearfar.workflows.bench.map_ import Work as MapWork
    from nearfar.workflows.bench.pipeline import Work as PipelineWork
    from nearfar.workflows.bench.stencil import Work as StencilWork
    from nearfar.workflows.options import Options
    from nearfar.workflows.recording import Recording

#: Seconds of a probe by default, and of a quick one.
PROBE_S, QUICK_S = 45.0, 6.0


def chosen_cpus(machine: Machine, wanted: str | None) -> list[int]:
    """The CPUs of --cpus; by default all usable ones, starting with one CPU of each core."""
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
    """The effective last cache, measured in a few seconds."""
    from nearfar.measure.latency import quick_last_cache

    recording.session.progress.step("looking for the last cache", 0.0)
    return quick_last_cache(recording.session, cpu, recording.machine.last_cache_bytes())


def probe_plan(
    machine: Machine,
    tier: str,
    options: Options,
    *,
    quick: bool,
    region_bytes: int | None,
    threads: Sequence[int],
    size: str | None,
) -> StudyPlan:
    """The plan of ``nearfar probe``: one tier, all probes."""
    from nearfar.measure import arrays, latency
    from nearfar.measure.study_plan import PACED, PROBE, QUICK, StudyPlan
    from nearfar.measure.tiers import is_paced

    team = chosen_cpus(machine, options.cpus)
    asked = parse_size(size) if size is not None else None
    if asked:
        arrays.check_room((tier, tier, tier), asked)
    last = machine.last_cache_bytes()
    largest = latency.quick_region(last) if quick else latency.default_region(last)
    shares = QUICK if quick else PROBE
    left_out = [section for section in shares if is_paced(tier) and section not in PACED]
    return StudyPlan(
        [tier],
        PACED if left_out else shares,
        options.budget_s(QUICK_S if quick else PROBE_S),
        team,
        region_bytes or largest,
        threads=chosen_threads(threads, len(team)),
        array_bytes=asked,
        runs=options.runs,
        warmup=options.warmup,
        left_out=left_out,
    )


def chosen_threads(wanted: Sequence[int], processors: int) -> tuple[int, ...]:
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
    options: Options,
    *,
    threads: Sequence[int],
    size: str | None,
) -> tuple[ArrayPlan, int]:
    """The plan of array kernels, and the effective last cache from which its size follows.

    Raises BadInputError for arrays too small to split, MachineError where they do not fit.
    """
    from nearfar.measure import arrays
    from nearfar.measure.tiers import check_tiers

    check_tiers(tiers)
    team = chosen_cpus(recording.machine, options.cpus)
    counts = chosen_threads(threads, len(team))
    asked = parse_size(size) if size is not None else None
    if asked:
        arrays.check_size(asked)
        arrays.check_room(tiers, asked)
    cache = last_cache(recording, team[0])
    array_bytes = asked or arrays.default_array_bytes(cache)
    arrays.check_room(tiers, array_bytes)
    _note_in_cache(recording, array_bytes, cache)
    rounds = 1 if options.runs else arrays.ROUNDS
    return arrays.ArrayPlan(kernels, tiers, array_bytes, tuple(team), counts, rounds), cache


def _note_in_cache(recording: Recording, array_bytes: int, cache: int) -> None:
    from nearfar.measure import arrays

    if arrays.in_cache(array_bytes, cache):
        recording.session.progress.note(
            f"arrays of {format_size(array_bytes)} are under {arrays.MIN_CACHES} x the last "
            "cache: these figures are the cache's, not memory's"
        )


def compete_plan(
    recording: Recording, copies: Copies, options: Options, *, feeds_fit: bool
) -> tuple[CompetePlan, int]:
    """The plan of ``bench compete``, and the effective last cache from which its size follows.

    Raises BadInputError for arrays too small to time, and for more threads than CPUs that --cpus
    names (or than this machine has, if the rows are used for a fit); MachineError if the arrays of
    all threads do not fit.
    """
    from nearfar.measure import arrays, compete
    from nearfar.measure.tiers import check_tiers

    check_tiers((copies.near, copies.far))
    team = chosen_cpus(recording.machine, options.cpus)
    splits = _splits(len(team), copies)
    _check_split_threads(sum(splits[0]), team, options, feeds_fit=feeds_fit)

    def check_room(array_bytes: int) -> None:
        for split in splits:
            tiers = compete.tiers_of(copies.mode, copies.near, copies.far, split)
            arrays.check_room(tiers, array_bytes)

    asked = _copy_bytes(copies.size)
    if asked:
        check_room(asked)
    cache = last_cache(recording, team[0])
    array_bytes = asked or arrays.default_array_bytes(cache)
    check_room(array_bytes)
    _note_in_cache(recording, array_bytes, cache)
    plan = compete.CompetePlan(
        copies.mode,
        copies.near,
        copies.far,
        array_bytes,
        tuple(team),
        splits,
        copies.iterations,
    )
    return plan, cache


def _check_split_threads(
    threads: int, team: list[int], options: Options, *, feeds_fit: bool
) -> None:
    from nearfar.measure.teams import check_threads

    check_threads(threads, team, asked=options.cpus is not None)
    if feeds_fit and threads > len(team):
        raise BadInputError(
            f"{threads} threads share {len(team)} processors: such rows feed no fit",
            "use fewer threads, or leave --csv out",
        )


def _copy_bytes(size: str | None) -> int | None:
    """Bytes of an array, if requested. Raises BadInputError if its copy is too short to time."""
    from nearfar.measure import arrays

    if size is None:
        return None
    asked = parse_size(size)
    if asked < arrays.MIN_TIMED_ALONE:
        raise BadInputError(
            f"a copy of {format_size(asked)} is too short to be timed by itself",
            f"give at least {format_size(arrays.MIN_TIMED_ALONE)}",
        )
    return asked


def _splits(processors: int, copies: Copies) -> tuple[Split, ...]:
    from nearfar.measure import compete

    near_threads, far_threads = copies.near_threads, copies.far_threads
    if not copies.sweep:
        far = far_threads or 1
        return ((near_threads or max(processors - far, 1), far),)
    if (near_threads is None) != (far_threads is None):
        raise BadInputError(
            "--sweep splits a number of threads, and one side alone does not give it",
            "give both --near-threads and --far-threads (their sum is split), or neither",
        )
    threads = (near_threads or 0) + (far_threads or 0) or processors
    if threads < 2:
        raise BadInputError(
            "one thread cannot be split between two sides",
            "give --near-threads 1 --far-threads 1 (they will share a processor)",
        )
    return compete.sweep(threads)


def stencil_plan(
    recording: Recording,
    work: StencilWork,
    far_rows: int | None,
    options: Options,
    *,
    with_alone: bool,
) -> StencilPlan:
    """The plan of ``bench stencil``; ``far_rows`` is None if the split is to be predicted.

    Raises BadInputError for far rows beyond the array and too many threads, MachineError where
    the arrays do not fit.
    """
    from nearfar.measure.stencil import StencilPlan
    from nearfar.measure.tiers import check_tiers

    check_tiers((work.near, work.far))
    plan = StencilPlan(
        work.rows,
        work.cols,
        far_rows or 0,
        work.version,
        work.near,
        work.far,
        both_teams(recording.machine, (work.near_threads, work.far_threads), options.cpus),
        options.seed,
        work.kernel,
        with_alone,
    )
    plan.check_room()
    return plan


def both_teams(machine: Machine, threads: tuple[int | None, int | None], cpus: str | None) -> Teams:
    """Near and far threads; by default one far thread, and near ones on all other CPUs.

    Raises BadInputError for more threads than requested CPUs.
    """
    from nearfar.measure.teams import Teams, check_threads

    team = chosen_cpus(machine, cpus)
    near, far = threads
    far = 1 if far is None else far
    near = near or max(len(team) - far, 1)
    check_threads(near + far, team, asked=cpus is not None)
    return Teams(near, far, tuple(team))


def pipeline_plan(recording: Recording, work: PipelineWork, options: Options) -> PipelinePlan:
    """The plan of ``bench pipeline``.

    Raises BadInputError for too many threads, MachineError where the vectors do not fit.
    """
    from nearfar.measure.pipeline import PipelinePlan
    from nearfar.measure.tiers import check_tiers

    check_tiers((work.near, work.far))
    threads = (work.near_threads, 0 if work.near_only else work.far_threads)
    teams = both_teams(recording.machine, threads, options.cpus)
    plan = PipelinePlan(work.vector, work.rounds, work.near, work.far, teams, options.seed)
    plan.check_room()
    return plan


def map_plan(machine: Machine, work: MapWork, options: Options) -> MapPlan:
    """The plan of ``bench map``.

    Raises BadInputError for invalid maps, and if --keep would overwrite a file.
    """
    from nearfar.measure import maps, pool_tiers
    from nearfar.measure.teams import check_threads

    team = chosen_cpus(machine, options.cpus)
    check_threads(work.threads, team, asked=options.cpus is not None)
    points = tuple(maps.Point(n, d) for d in work.value_bytes for n in work.operations)
    placed = tuple(team[i % len(team)] for i in range(work.threads))
    plan = maps.MapPlan(
        work.type, work.op, points, work.tier_name, placed, options.seed, work.alloc, work.compare
    )
    if work.keep:
        if not plan.persistent:
            raise BadInputError("a counterpart in DRAM has no pool to keep", "leave --keep out")
        # Both raise if the pool cannot be kept; the results are not used.
        pool_tiers.place(work.tier_name)
        pool_tiers.kept_file(work.tier_name, maps.DEFAULT_FILE)
    maps.check(plan)
    return plan
