"""What kernels and hardware do with a program's pages, beside the plan, with as much near memory.

    first-touch   Linux as it comes: pages lie near in the order of their first touch, until full
    interleave    Linux' weighted interleave, weights by the share of memory that is near
    hot-pages     NUMA balancing as tiering: first touch, then pages touched twice in a second move
                  near, at most 256 MB/s of them; what was not touched is demoted
    clock-dwf     CLOCK-DWF (Lee, Bahn, Noh 2014): pages that are written move near
    memory-mode   near is a direct-mapped cache of far, line by line, in hardware

They have all of the program's memory to place, stack, globals and mappings too; so near memory is
what the plan has for the heap and what those hold. A moved page costs 2 us of the kernel and the
traffic of its lines.

Of a long run they place all of the first 16 million lines, then those of the sample that the plan
is judged on. Time is that of the sample, with the kernel's for all moves; the traffic of moves
between its stretches is not in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar.records.advice import PolicyName

if TYPE_CHECKING:
    from nearfar._native import PolicyCosts
    from nearfar.place.costing import Coster
    from nearfar.place.figures import Memory
    from nearfar.place.traced import Traced

POLICIES: tuple[PolicyName, ...] = (
    "first-touch", "interleave", "hot-pages", "clock-dwf", "memory-mode",
)  # fmt: skip
_PAGE = 4096
#: Weights of an interleave add up to this.
_WEIGHTS = 32


@dataclass(frozen=True)
class Followed:
    """A policy's run through the model."""

    policy: PolicyName
    near_bytes: int
    time_ns: float
    moved_pages: int
    near_share: float  # of the lines read and written
    far_writes: int  # lines, of the program and of what was moved


def follow(
    traced: Traced, coster: Coster, far: Memory, near_bytes: int, time_s: float
) -> list[Followed]:
    """All policies over the trace; ``near_bytes`` in all, ``time_s`` of the program, all near."""
    near_bytes = max(near_bytes, _PAGE)
    everything = traced.heap_peak_bytes + traced.fixed_bytes()
    weight = min(max(round(_WEIGHTS * near_bytes / max(everything, 1)), 1), _WEIGHTS - 1)
    near, beyond = coster.near.at(coster.near.latency), far.at(far.latency)
    core = coster.core.at(coster.work)
    found = traced.sample.follow(
        [(name.replace("-", "_"), near_bytes, weight, _WEIGHTS - weight, near, beyond, core)
         for name in POLICIES],
        time_s * 1e12 / max(traced.instructions, 1),
        traced.touches,
    )  # fmt: skip
    return [_told(name, cost, coster, far, near_bytes)
            for name, cost in zip(POLICIES, found, strict=True)]  # fmt: skip


def _told(
    name: PolicyName, cost: PolicyCosts, coster: Coster, far: Memory, near_bytes: int
) -> Followed:
    share = coster.share_of(cost["instructions"])
    touching = cost["far_pages"] * _PAGE * (far.touch - coster.near.touch) * share
    lines = cost["near_lines"] + cost["far_lines"]
    return Followed(
        name, near_bytes, cost["time_ns"] + touching + coster.waiting_ns(cost["instructions"]),
        cost["moved_pages"], cost["near_lines"] / lines if lines else 1.0, cost["far_written"],
    )  # fmt: skip
