"""Run a program with its memory in several places, in turns, and compare the times.

In each round every variant runs once, in random order: a ratio is of runs of the same round, so
that what disturbs the machine for longer than a round disturbs both.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from nearfar.errors import BadInputError
from nearfar.files import require_file
from nearfar.measure.tiers import origin_of
from nearfar.noise import Watch
from nearfar.place import preload
from nearfar.place.kernel_tiering import kernel_tiering
from nearfar.place.native_run import TimedRun, run_once
from nearfar.place.whole_program import places_mappings, whole_program_on
from nearfar.process.stdin import StandardInput, of_this_process
from nearfar.records.figures import Origin, Provenance, figure_fields
from nearfar.records.variants import RunTimes, VariantRow, VariantsResult

if TYPE_CHECKING:
    from nearfar.measure.progress import Progress
    from nearfar.place.promise import PlanPromise

ALL_NEAR, ALL_FAR, KERNEL = "all-near", "all-far", "kernel"
#: Rounds by default: the median has a 95 % interval from six on.
DEFAULT_RUNS = 8
_NEAR = {"near": "dram"}
#: A run that takes longer is stopped.
_LONGEST_S = 24 * 3600.0


@dataclass(frozen=True)
class Variant:
    """A placement of the program's memory: all of it on a tier, or by a plan.

    ``predicted``: the slowdown that a plan predicts for this placement; ``pages``: the page sizes
    that the prediction assumes. ``by_kernel``: the kernel moves pages while the program runs.
    """

    name: str
    placement: preload.Placement
    predicted: float | None = None
    by_kernel: bool = False
    pages: dict[str, int] = field(default_factory=dict)


def compare_variants(
    program: Sequence[str],
    names: Sequence[str],
    tiers: Mapping[str, str],
    progress: Progress,
    *,
    runs: int = DEFAULT_RUNS,
    stdin: StandardInput | None = None,
    seed: int = 1,
) -> VariantsResult:
    """Compare variants: ``all-near``, ``all-far``, ``kernel`` and plan files, of which the first is
    the base. ``stdin``: read by each run; default: a file that this process has as standard input.

    Raises BadInputError if a variant, a tier or a plan is invalid, and if the program fails;
    MachineError if the kernel cannot place pages by itself.
    """
    from nearfar.process.elf import ignores_preload
    from nearfar.process.program_file import program_file

    why = ignores_preload(program_file(program[0]))
    if why:
        raise BadInputError(
            f"{why}: its memory cannot be placed before it runs, only moved while it does",
            "compare a dynamically linked program; `nearfar run --plan --stats` places this one",
        )
    from nearfar.measure.memory import on_pages, page_bytes

    with tempfile.TemporaryDirectory(prefix="nearfar-compare-") as folder:
        variants = _variants(names, {**_NEAR, **tiers}, Path(folder))
        watch = Watch("the runs", kernel_works=any(one.by_kernel for one in variants))
        taken = _in_turns(program, variants, progress, runs, stdin, seed)
        verdict = watch.verdict()
    return VariantsResult(
        program=list(program),
        tiers={**_NEAR, **tiers},
        runs=runs,
        variants=[_row(one, taken[one.name], taken[variants[0].name]) for one in variants],
        disturbed=verdict.reasons if verdict.noisy else [],
        page_bytes={name: page_bytes(on_pages(tier)) for name, tier in {**_NEAR, **tiers}.items()},
        predicted_page_bytes=next((one.pages for one in variants if one.pages), {}),
    )


def _in_turns(
    program: Sequence[str],
    variants: Sequence[Variant],
    progress: Progress,
    runs: int,
    stdin: StandardInput | None,
    seed: int,
) -> dict[str, list[TimedRun]]:
    """The runs of each variant, by its name."""
    environments = {one.name: preload.environment(one.placement, None) for one in variants}
    for environment in environments.values():
        preload.check(environment)
    if any(one.by_kernel for one in variants):
        with kernel_tiering():  # refused before the first run
            pass
    given = (stdin or of_this_process()).path
    order, taken = random.Random(seed), {one.name: list[TimedRun]() for one in variants}
    for number in range(runs):
        for one in order.sample(variants, len(variants)):
            progress.step(f"run {number + 1} of {runs}: {one.name}", number / runs)
            with kernel_tiering() if one.by_kernel else nullcontext():
                taken[one.name].append(_timed(program, environments[one.name], given))
    return taken


def _variants(names: Sequence[str], tiers: Mapping[str, str], folder: Path) -> list[Variant]:
    if len({_same(name) for name in names}) != len(names) or len(names) < 2:
        raise BadInputError(
            f"--compare {','.join(names)} does not name two or more different variants",
            "give a list such as --compare all-near,all-far,program.plan",
        )
    plans = [name for name in names if name not in (ALL_NEAR, ALL_FAR, KERNEL)]
    promised = {name: _promised(Path(name)) for name in plans}
    if "far" not in tiers and (plans or ALL_FAR in names):
        raise BadInputError("no far memory is named", "name it: --tier far=numa:1")
    # Predictions are shown only next to runs that can confirm them. They are for slower memory, not
    # for DRAM that emulates it, and relative to a run with all data near, which must be the first.
    if not places_mappings(tiers.get("far", "")) or names[0] != ALL_NEAR:
        promised = dict.fromkeys(plans)
    first = promised[plans[0]] if plans else None
    made = []
    for name in names:
        if name == KERNEL:  # without a memory policy: the kernel would not move pages that have one
            near = preload.Placement(None, {"near": tiers["near"]})
            made.append(Variant(name, near, by_kernel=True))
        elif name == ALL_NEAR:
            made.append(Variant(name, whole_program_on("near", {"near": tiers["near"]}, folder)))
        elif name == ALL_FAR:
            made.append(
                Variant(
                    name,
                    whole_program_on("far", tiers, folder),
                    first.slowdown_all_far if first else None,
                    pages=_pages(first),
                )
            )
        else:
            plan = preload.Placement(Path(name), dict(tiers))
            promise = promised[name]
            made.append(
                Variant(name, plan, promise.slowdown if promise else None, pages=_pages(promise))
            )
    return made


def _same(name: str) -> str:
    """Identity of a variant: its name, or the resolved path of a plan."""
    return name if name in (ALL_NEAR, ALL_FAR, KERNEL) else str(Path(name).resolve())


def _pages(promise: PlanPromise | None) -> dict[str, int]:
    """Bytes of a page of the memories that a promise is for; empty if it does not have them."""
    if promise is None:
        return {}
    found = {"near": promise.near_page_bytes, "far": promise.far_page_bytes}
    return {name: size for name, size in found.items() if size is not None}


def _promised(plan: Path) -> PlanPromise | None:
    """The slowdowns that a plan promises; None without promise."""
    from nearfar.place.promise import read_promise

    require_file(plan, "variant", "give all-near, all-far, kernel, or a plan that `advise` wrote")
    try:
        return read_promise(plan).whole
    except BadInputError:  # a plan need not promise anything
        return None


def _timed(program: Sequence[str], environment: Mapping[str, str], stdin: str) -> TimedRun:
    found = run_once(program, _LONGEST_S, environment, stdin)
    code = os.waitstatus_to_exitcode(found.status)
    if code:
        how = f"was killed by signal {-code}" if code < 0 else f"failed with exit code {code}"
        raise BadInputError(
            f"{program[0]} {how}: its times are not compared", "fix it, or its arguments, first"
        )
    return found


def _run_times(runs: Sequence[TimedRun]) -> RunTimes:
    walls = [run.time_s for run in runs]
    return RunTimes(
        mean_s=fmean(walls),
        stddev_s=stdev(walls) if len(walls) > 1 else None,
        min_s=min(walls),
        max_s=max(walls),
        user_s=fmean(run.user_s for run in runs),
        system_s=fmean(run.system_s for run in runs),
    )


def _row(one: Variant, mine: Sequence[TimedRun], first: Sequence[TimedRun]) -> VariantRow:
    from nearfar.stats import median, ratio_of_pairs

    cpu, base_cpu = ([run.user_s + run.system_s for run in runs] for runs in (mine, first))
    wall, base_wall = ([run.time_s for run in runs] for runs in (mine, first))
    estimates = {"cpu_time_s": median(cpu), "time_s": median(wall)}
    if mine is not first:
        estimates["slowdown"] = ratio_of_pairs(cpu, base_cpu)
        estimates["wall_slowdown"] = ratio_of_pairs(wall, base_wall)
    origin, note = origin_of(*one.placement.tiers.values())
    fields: dict[str, Any] = figure_fields(origin, estimates, note=note)
    fields["run_times"] = _run_times(mine)
    if one.predicted is not None:
        fields["predicted_slowdown"] = one.predicted
        fields["provenance"]["predicted_slowdown"] = Provenance(
            origin=Origin.MODELLED, statistic="model", samples=0, note="promise of the plan"
        )
    return VariantRow(variant=one.name, **fields)
