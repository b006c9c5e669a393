"""``numactl``: all memory of a program on one node."""

from __future__ import annotations

from nearfar.records.advice import AdviceResult
from nearfar.report.other_tools.header import command, comment, header, restart

#: Slowdown up to which all memory is put far.
_ACCEPTED = 1.05


def lines(result: AdviceResult) -> list[str]:
    """All data far if that loses at most 5 %, else near as long as there is room."""
    if result.slowdown_all_far <= _ACCEPTED:
        return [
            *header(result),
            *comment(f"All data far loses at most {_ACCEPTED - 1:.0%}."),
            *restart(result),
            f'numactl --membind="$far_node" -- {command(result)}',
        ]
    return [
        *header(result),
        *comment(
            "numactl places a whole program: it cannot keep some of its data near and others far, "
            "as `nearfar run --plan` does. Near memory is used first, far memory if that is full."
        ),
        *restart(result),
        f'numactl --preferred="$near_node" -- {command(result)}',
    ]
