"""STREAM: copy, scale, add, triad, with a tier for each array."""

from __future__ import annotations

from dataclasses import replace

from nearfar.errors import BadInputError
from nearfar.measure import pool_tiers
from nearfar.measure.arrays import ArrayPlan, Point, in_cache, point_name, skipped_points
from nearfar.measure.session import Effort, Samples, Session
from nearfar.records.results import StreamKernel, StreamResult, StreamRun
from nearfar.records.run import Skipped
from nearfar.stats import Estimate, best, median

KERNELS = ("copy", "scale", "add", "triad")
#: Number of iterations, as in the reference, which reports best and mean of all but the first.
REFERENCE_ROUNDS = 9
MIN_ARRAY_IN_POOL = 1 << 20


def check(plan: ArrayPlan) -> None:
    """Reject arrays in a pool if no pool is possible, by creating three small ones."""
    if plan.accessor == "mapped":
        return
    pool_tiers.require_pools()
    if len(set(plan.tiers)) > 1:
        raise BadInputError("the arrays of a pool lie on one tier", "give --tier alone")
    replace(plan, array_bytes=MIN_ARRAY_IN_POOL).bench(plan.team(1))


def measure(
    session: Session, plan: ArrayPlan, effort: Effort, effective_last_cache: int
) -> tuple[StreamResult, list[Skipped]]:
    """Run the plan. The result is the run with the most threads; its ``sweep`` has all runs."""
    samples, dropped = session.repeat("stream", "bytes_per_s", plan, effort, label=point_name)
    small = in_cache(plan.array_bytes, effective_last_cache)
    threads = sorted({threads for _, threads in samples.series})
    sweep = [_run(session, plan, samples, t, small) for t in threads]
    top = sweep[-1].model_dump(by_alias=True)
    return StreamResult(**top, sweep=sweep), skipped_points("stream", plan.tiers[0], dropped)


def _run(
    session: Session, plan: ArrayPlan, samples: Samples[Point], threads: int, small: bool
) -> StreamRun:
    a, b, c = plan.tiers
    kernels = {name: _kernel(session, plan, samples, (name, threads)) for name in KERNELS}
    checked = Estimate(
        samples.worst_error,
        0.0,
        samples.worst_error,
        len(samples.raw["copy", threads]),
        0.0,
        "largest",
    )
    return StreamRun(
        **session.figures(*plan.tiers, worst_error=checked),
        tier_a=a,
        tier_b=b,
        tier_c=c,
        accessor=plan.accessor,
        cpus=plan.team(threads),
        oversubscribed=threads > len(plan.cpus),
        size_bytes=plan.array_bytes,
        in_cache=small,
        copy=kernels["copy"],
        scale=kernels["scale"],
        add=kernels["add"],
        triad=kernels["triad"],
    )


def _kernel(
    session: Session, plan: ArrayPlan, samples: Samples[Point], point: Point
) -> StreamKernel:
    return StreamKernel(
        write_allocate=True,
        **session.figures(
            *plan.tiers,
            best_bandwidth_bytes_per_s=best(samples.raw[point]),
            median_bandwidth_bytes_per_s=median(samples.of(point)),
        ),
    )
