"""The kernel's weighted interleaving (Linux 6.9 or later): pages in proportion to bandwidths.

Weights are those of the bandwidths of all threads, as the kernel's documentation of
``mempolicy/weighted_interleave`` recommends; of one thread, if only that is known of a memory.
Reference 39 of docs/references.md has the measured gains for programs that bandwidth limits.
"""

from __future__ import annotations

from nearfar.errors import BadInputError
from nearfar.machine.interleave_weights import WEIGHTS, weights_of
from nearfar.records.advice import LOWER_BOUND, AdviceResult
from nearfar.report.other_tools.header import command, comment, header, restart
from nearfar.units import format_bandwidth


def weights(near_bytes_per_s: float, far_bytes_per_s: float) -> tuple[int, int]:
    """The smallest weights of both memories that are close to their bandwidths."""
    found = weights_of({0: near_bytes_per_s, 1: far_bytes_per_s})
    return found[0], found[1]


def lines(result: AdviceResult) -> list[str]:
    """Weights of both nodes, and the program under them."""
    near_rate, far_rate = result.near_peak_bytes_per_s, result.far_peak_bytes_per_s
    basis = f"Bandwidth of all threads{_bounds(result)}"
    if not near_rate or not far_rate:
        near_rate, far_rate = result.near_bandwidth_bytes_per_s, result.far_bandwidth_bytes_per_s
        basis = "Bandwidth of one thread, as that of all threads is not known of both memories"
    if not near_rate or not far_rate:
        raise BadInputError(
            f"the bandwidth of {result.far if near_rate else result.near} is not known",
            "name memories whose profiles have it, or import it with `nearfar profile import`",
        )
    near, far = weights(near_rate, far_rate)
    alone = ""
    if result.all_far_load is None:  # its slowdowns are those of latency
        slowdown = 1 + (result.slowdown_movable_far - 1) * far / (near + far)
        alone = f"; by latency alone this program would take about {slowdown:.2f} x of its time"
    return [
        *header(result),
        *comment(
            f"{basis}: {format_bandwidth(near_rate)} near, {format_bandwidth(far_rate)} far: "
            f"weights {near} and {far}. This pays for programs that use all bandwidth of near "
            f"memory{alone}. This requires root, Linux 6.9 or later, and a numactl that knows "
            "--weighted-interleave."
        ),
        *restart(result),
        f'echo {near} > /{WEIGHTS}/node"$near_node"',
        f'echo {far} > /{WEIGHTS}/node"$far_node"',
        f'numactl --weighted-interleave="$near_node,$far_node" -- {command(result)}',
    ]


def _bounds(result: AdviceResult) -> str:
    """Which of the bandwidths are lower bounds, in brackets."""
    sides = [
        side
        for side in ("near", "far")
        if (known := result.provenance.get(f"{side}_peak_bytes_per_s"))
        and known.note.startswith(LOWER_BOUND)
    ]
    return f" (of {' and '.join(sides)} memory a lower bound)" if sides else ""
