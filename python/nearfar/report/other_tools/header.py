"""Header of all scripts: the answer that they follow, and the nodes of both memories."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from nearfar._native import NativeError, parse_tier
from nearfar.records.advice import AdviceResult
from nearfar.report.advice_words import program_command
from nearfar.units import format_size

if TYPE_CHECKING:
    from nearfar._native import TierSpec

#: Nodes where the answer does not name them.
_NEAR_NODE, _FAR_NODE = 0, 1
_WIDTH = 96


def comment(text: str) -> list[str]:
    """A text as comments of a shell."""
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ")


def command(result: AdviceResult) -> str:
    """The program as a shell takes it, with its standard input; ``COMMAND`` for a process that was
    running."""
    return "COMMAND" if result.pid is not None else program_command(result)


def restart(result: AdviceResult) -> list[str]:
    """Note on placing a process that was running with a tool that starts programs."""
    if result.pid is None:
        return []
    return comment(
        f"It places a program from its start: stop process {result.pid}, and start it with the "
        "last line, with its command for COMMAND; in a unit of systemd, the last line is its "
        f"ExecStart. `tr '\\0' ' ' < /proc/{result.pid}/cmdline` prints the command, if the "
        f"program did not change it. `nearfar place --pid {result.pid}` moves its pages now."
    )


def header(result: AdviceResult) -> list[str]:
    """Comments with the answer, then ``near_node`` and ``far_node``."""
    known = _node(result.near), _node(result.far)
    near, far = (
        default if node is None else node
        for node, default in zip(known, (_NEAR_NODE, _FAR_NODE), strict=True)
    )
    return [
        *comment(f"nearfar advise, far memory {result.far}: {' '.join(result.program)}"),
        *comment(
            f"CPU time with all data far: {result.slowdown_all_far:.2f} x; with "
            f"{format_size(result.near_bytes)} of {format_size(result.movable_bytes)} of movable "
            f"memory near: {result.slowdown_plan:.2f} x."
        ),
        *(comment("Nodes are assumed: `nearfar topo` lists them.") if None in known else []),
        f"near_node={near} far_node={far}",
    ]


def tier_of(memory: str) -> TierSpec | None:
    """The tier that a memory is; None for profiles."""
    try:
        return parse_tier(memory)
    except NativeError:
        return None


def _node(memory: str) -> int | None:
    """The node of a tier; None for profiles and other tiers."""
    tier = tier_of(memory)
    return tier["node"] if tier and tier["kind"] == "numa" else None
