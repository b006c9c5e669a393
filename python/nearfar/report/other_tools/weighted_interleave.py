"""The kernel's weighted interleaving (Linux 6.9 or later): pages in proportion to bandwidths.

Weights are those of the read bandwidths that the model used, as the kernel's documentation of
``mempolicy/weighted_interleave`` recommends. Reference 39 of docs/references.md has the measured
gains for programs that bandwidth limits.
"""

from __future__ import annotations

from nearfar.errors import BadInputError
from nearfar.machine.interleave_weights import WEIGHTS, weights_of
from nearfar.records.advice import AdviceResult
from nearfar.report.other_tools.header import command, comment, header
from nearfar.units import format_bandwidth


def weights(near_bytes_per_s: float, far_bytes_per_s: float) -> tuple[int, int]:
    """The smallest weights of both memories that are close to their bandwidths."""
    found = weights_of({0: near_bytes_per_s, 1: far_bytes_per_s})
    return found[0], found[1]


def lines(result: AdviceResult) -> list[str]:
    """Weights of both nodes, and the program under them."""
    near_rate, far_rate = result.near_bandwidth_bytes_per_s, result.far_bandwidth_bytes_per_s
    if not near_rate or not far_rate:
        raise BadInputError(
            f"the bandwidth of {result.far if near_rate else result.near} is not known",
            "name memories whose profiles have it, or import it with `nearfar profile import`",
        )
    near, far = weights(near_rate, far_rate)
    latency_only = 1 + (result.slowdown_movable_far - 1) * far / (near + far)
    return [
        *header(result),
        *comment(
            f"Bandwidth of one thread: {format_bandwidth(near_rate)} near, "
            f"{format_bandwidth(far_rate)} far: weights {near} and {far}. Set them by the "
            "bandwidth of all threads if you know it (`nearfar bench stream`). This pays for "
            "programs that use all bandwidth of near memory; by latency alone this program would "
            f"take about {latency_only:.2f} x of its time. This requires root, Linux 6.9 or later, "
            "and a numactl that knows --weighted-interleave."
        ),
        f'echo {near} > /{WEIGHTS}/node"$near_node"',
        f'echo {far} > /{WEIGHTS}/node"$far_node"',
        f'numactl --weighted-interleave="$near_node,$far_node" -- {command(result)}',
    ]
