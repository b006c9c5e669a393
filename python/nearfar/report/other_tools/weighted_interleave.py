"""The kernel's weighted interleaving (Linux 6.9 or later): pages in proportion to bandwidths.

Weights are those of the bandwidths of all threads, as the kernel's documentation of
``mempolicy/weighted_interleave`` recommends. One thread is limited by its core, on near and far
memory alike, so that weights of its bandwidths would be close to 1:1 on every machine.
Reference 39 of docs/references.md has the measured gains for programs that bandwidth limits.
"""

from __future__ import annotations

from nearfar.errors import BadInputError, MachineError, NearfarError
from nearfar.machine.interleave_weights import WEIGHTS, weights_of
from nearfar.records.advice import LOWER_BOUND, AdviceResult
from nearfar.report.other_tools.header import command, comment, header, restart, tier_of
from nearfar.units import format_bandwidth


def weights(near_bytes_per_s: float, far_bytes_per_s: float) -> tuple[int, int]:
    """The smallest weights of both memories that are close to their bandwidths."""
    found = weights_of({0: near_bytes_per_s, 1: far_bytes_per_s})
    return found[0], found[1]


def lines(result: AdviceResult) -> list[str]:
    """Weights of both nodes, and the program under them."""
    near_rate, far_rate = result.near_peak_bytes_per_s, result.far_peak_bytes_per_s
    if not near_rate or not far_rate:
        raise _unknown(result, result.far if near_rate else result.near)
    near, far = weights(near_rate, far_rate)
    alone = ""
    if result.all_far_load is None:  # its slowdowns are those of latency
        slowdown = 1 + (result.slowdown_movable_far - 1) * far / (near + far)
        alone = f"; by latency alone this program would take about {slowdown:.2f} x of its time"
    return [
        *header(result),
        *comment(
            f"Bandwidth of all threads{_bounds(result)}: {format_bandwidth(near_rate)} near, "
            f"{format_bandwidth(far_rate)} far: "
            f"weights {near} and {far}. This pays for programs that use all bandwidth of near "
            f"memory{alone}. This requires root, Linux 6.9 or later, and a numactl that knows "
            "--weighted-interleave."
        ),
        *restart(result),
        f'echo {near} > /{WEIGHTS}/node"$near_node"',
        f'echo {far} > /{WEIGHTS}/node"$far_node"',
        f'numactl --weighted-interleave="$near_node,$far_node" -- {command(result)}',
    ]


def _unknown(result: AdviceResult, memory: str) -> NearfarError:
    """Why there are no weights: a tier could not be measured, or a profile does not have it."""
    what = f"the bandwidth of all threads is not known of {memory}: there are no weights"
    reason = next((f" ({limit})" for limit in result.limits if limit.startswith(memory)), "")
    if tier_of(memory):
        return MachineError(what + reason, "repeat on an idle machine with at least two CPUs")
    return BadInputError(
        what, "name memories whose profiles have it, or import it with `nearfar profile import`"
    )


def _bounds(result: AdviceResult) -> str:
    """Which of the bandwidths are lower bounds, in brackets."""
    sides = [
        side
        for side in ("near", "far")
        if (known := result.provenance.get(f"{side}_peak_bytes_per_s"))
        and known.note.startswith(LOWER_BOUND)
    ]
    return f" (of {' and '.join(sides)} memory a lower bound)" if sides else ""
