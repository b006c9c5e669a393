"""Where the memory of a program was."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.place.accounts import Process, RunAccounts
from nearfar.report.text.layout import columns
from nearfar.units import format_size

_COUNTS = ("allocations", "frees", "failed", "spilled")
_BYTES = ("allocated_bytes", "live_bytes", "span_bytes", "returned_bytes")
_HEADS = ["Tier", "Allocations", "Frees", "Failed", "Spilled", "Allocated", "Live", "Span",
          "Returned"]  # fmt: skip


#: Processes that a terminal shows; the JSON document has all.
MOST_PROCESSES = 6


def run_accounts(accounts: RunAccounts) -> RenderableType:
    """A table a process: what was allocated in each tier, counted by libhmalloc."""
    parts: list[RenderableType] = []
    for process in accounts.processes[:MOST_PROCESSES]:
        parts += [Text(f"Process {process.process}  [counted]", style="bold"), _table(process)]
    more = len(accounts.processes) - MOST_PROCESSES
    if more > 0:
        parts.append(Text(f"and {more} more processes, all of them in --json FILE", style="dim"))
    return Group(*parts)


def _table(process: Process) -> RenderableType:
    rows = [
        [
            tier, *(f"{counts.get(key, 0):,}" for key in _COUNTS),
            *(format_size(counts.get(key, 0)) for key in _BYTES),
        ]
        for tier, counts in process.tiers.items()
    ]  # fmt: skip
    return columns(_HEADS, rows, 1)
