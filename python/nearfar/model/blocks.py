"""Parts of a range in which events are equally dense.

The density is piecewise constant; the best division into blocks maximizes

    sum over blocks of (N ln(N / T)) - penalty * number of blocks

with N events and extent T of a block, found exactly by dynamic programming (Bayesian Blocks:
Scargle, Norris, Jackson, Chiang, Astrophysical Journal 764:167, 2013, equations 19 and 21). The
penalty is chosen so that events of one density are divided with a probability of ``false_rate``.

Limits: events are assumed independent. Those that come in bursts are divided more often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def equal_blocks(
    events: Floats, extents: Floats, most: int, false_rate: float = 0.01
) -> list[tuple[int, int]]:
    """Divide bins into at most ``most`` blocks: pairs of the first bin and the one after the last.

    ``events`` and ``extents`` by bin, with extents above 0.
    """
    import numpy as np

    total = max(float(events.sum()), 1.0)
    penalty = 4 - float(np.log(73.53 * false_rate * total**-0.478))
    while True:
        found = _divided(events, extents, penalty)
        if len(found) <= most:
            return found
        penalty *= 2


def _divided(events: Floats, extents: Floats, penalty: float) -> list[tuple[int, int]]:
    import numpy as np

    counts, widths = np.cumsum(events), np.cumsum(extents)
    before_counts, before_widths = np.append(0, counts[:-1]), np.append(0, widths[:-1])
    best = np.zeros(len(events) + 1)  # of the bins before each
    first = np.zeros(len(events), np.int64)  # of the last block that ends with each bin
    for end in range(len(events)):
        inside = counts[end] - before_counts[: end + 1]
        width = widths[end] - before_widths[: end + 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            fit = np.where(inside > 0, inside * np.log(inside / width), 0.0)
        total = best[: end + 1] + fit - penalty
        first[end] = int(np.argmax(total))
        best[end + 1] = total[first[end]]
    blocks: list[tuple[int, int]] = []
    end = len(events)
    while end > 0:
        blocks.append((int(first[end - 1]), end))
        end = int(first[end - 1])
    return blocks[::-1]
