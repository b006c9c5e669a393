"""Weights of weighted interleaving: pages of each memory in proportion to its bandwidth."""

from __future__ import annotations

from collections.abc import Mapping

#: Where the kernel has them, since Linux 6.9.
WEIGHTS = "sys/kernel/mm/mempolicy/weighted_interleave"
#: Pages of the fastest memory in a row, and the largest weight that the kernel takes.
_MAX_IN_A_ROW, _MAX_WEIGHT = 10, 255


def weights_of(bytes_per_s: Mapping[int, float]) -> dict[int, int]:
    """The smallest weights of memory nodes that are close to their bandwidths."""
    top, least = max(bytes_per_s.values()), min(bytes_per_s.values())
    shares = {node: rate / top for node, rate in bytes_per_s.items()}
    if top >= _MAX_IN_A_ROW * least:
        most = min(round(top / least), _MAX_WEIGHT)
        return _rounded(shares, most)
    tried = [_rounded(shares, most) for most in range(1, _MAX_IN_A_ROW + 1)]
    return min(tried, key=lambda weights: round(_error(weights, shares), 2))


def _rounded(shares: Mapping[int, float], most: int) -> dict[int, int]:
    return {node: max(round(share * most), 1) for node, share in shares.items()}


def _error(weights: Mapping[int, int], shares: Mapping[int, float]) -> float:
    most = max(weights.values())
    return max(abs(weights[node] / most / share - 1) for node, share in shares.items())
