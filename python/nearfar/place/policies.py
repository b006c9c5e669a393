"""Page placement by kernels and hardware, modeled with the same near memory as the plan.

    first-touch   default of Linux: pages are near in the order of first touch, until near is full
    interleave    Linux' weighted interleave, weights by the share of memory that is near
    hot-pages     NUMA balancing as tiering: first touch, then pages touched twice in a second move
                  near, at most 256 MB/s of them; what was not touched is demoted
    clock-dwf     CLOCK-DWF (Lee, Bahn, Noh 2014): pages that are written move near
    memory-mode   near is a direct-mapped cache of far, line by line, in hardware

The policies place all of the program's memory, including stack, globals and mappings; near memory
is the plan's heap budget plus the size of stack, globals and mappings. A page migration costs 2 us
of kernel time and the traffic of its lines.

In a long run, policies place all of the first 16 million lines, then the lines of the sample for
which the plan is evaluated. The time is that of the sample, with kernel time for all migrations;
the traffic of migrations between sampled stretches is excluded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar.records.choices import PolicyName
from nearfar.units import PAGE_BYTES

if TYPE_CHECKING:
    from nearfar._native import PolicyCosts
    from nearfar.place.costing import Coster
    from nearfar.place.memory_costs import Memory
    from nearfar.place.traced import ProgramTrace

POLICIES: tuple[PolicyName, ...] = (
    "first-touch",
    "interleave",
    "hot-pages",
    "clock-dwf",
    "memory-mode",
)
#: Weights of an interleave add up to this.
_WEIGHTS = 32


@dataclass(frozen=True)
class PolicyResult:
    """The result of one policy."""

    policy: PolicyName
    near_bytes: int
    time_ns: float
    moved_pages: int
    near_share: float  # of the lines read and written
    far_writes: int  # lines, of the program and of migrations


def evaluate_policies(
    traced: ProgramTrace, coster: Coster, far: Memory, near_bytes: int, time_s: float
) -> list[PolicyResult]:
    """Run all policies over the trace; ``near_bytes`` in total, ``time_s`` with all data near."""
    near_bytes = max(near_bytes, PAGE_BYTES)
    everything = traced.movable_peak_bytes + traced.fixed_bytes()
    weight = min(max(round(_WEIGHTS * near_bytes / max(everything, 1)), 1), _WEIGHTS - 1)
    near, beyond = coster.near.at(coster.near.latency), far.at(far.latency)
    core = coster.core.at(coster.work)
    found = traced.sample.evaluate_policies(
        [
            (name.replace("-", "_"), near_bytes, weight, _WEIGHTS - weight, near, beyond, core)
            for name in POLICIES
        ],
        time_s * 1e12 / max(traced.instructions, 1),
        traced.touches,
    )
    return [
        _policy_cost(name, cost, coster, far, near_bytes)
        for name, cost in zip(POLICIES, found, strict=True)
    ]


def _policy_cost(
    name: PolicyName, cost: PolicyCosts, coster: Coster, far: Memory, near_bytes: int
) -> PolicyResult:
    share = coster.share_of(cost["instructions"])
    touched = sum(coster.traced.touched.small) or 1
    whole_ns = sum(coster.first_touches_ns(n, far) for n in range(len(coster.traced.sites)))
    touching = whole_ns * min(cost["far_pages"] / touched, 1.0) * share
    kernel_ns = max(coster.kernel_ns(cost["instructions"]) + touching, 0.0)
    lines = cost["near_lines"] + cost["far_lines"]
    return PolicyResult(
        name,
        near_bytes,
        cost["cpu_ns"] * coster.scale + kernel_ns,
        cost["moved_pages"],
        cost["near_lines"] / lines if lines else 1.0,
        cost["far_written"],
    )
