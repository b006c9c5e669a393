"""``run --stats`` and ``run --check``: where the memory of a program was allocated, and whether the
promise of its plan was kept."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.records.plan_check import Check, RuleCheck
from nearfar.records.run_statistics import ProcessStatistics, RunStatistics
from nearfar.report.terminal.layout import columns
from nearfar.units import format_size

_COUNTS = ("allocations", "frees", "failed", "spilled")
_BYTES = ("allocated_bytes", "live_bytes", "span_bytes", "returned_bytes")
_HEADS = [
    "Tier",
    "Allocations",
    "Frees",
    "Failed",
    "Spilled",
    "Allocated",
    "Live",
    "Span",
    "Returned",
]


#: Most processes shown in a terminal; the JSON document has all.
MAX_PROCESSES = 6
#: Most rules of a plan shown in a terminal.
MAX_RULES = 20


def run_statistics(statistics: RunStatistics) -> RenderableType:
    """Return one table per process: allocations in each tier, counted by libhmalloc."""
    parts: list[RenderableType] = []
    for process in statistics.processes[:MAX_PROCESSES]:
        parts += [Text(f"Process {process.process}  [counted]", style="bold"), _table(process)]
    more = len(statistics.processes) - MAX_PROCESSES
    if more > 0:
        parts.append(Text(f"and {more} more processes, all of them in --json FILE", style="dim"))
    return Group(*parts)


def _table(process: ProcessStatistics) -> RenderableType:
    rows = [
        [
            tier,
            *(f"{counts.get(key, 0):,}" for key in _COUNTS),
            *(format_size(counts.get(key, 0)) for key in _BYTES),
        ]
        for tier, counts in process.tiers.items()
    ]
    return columns(_HEADS, rows, 1)


def _traffic(rule: RuleCheck, *, counted: bool) -> tuple[str, ...]:
    """Return lines read and written, as promised and as counted; nothing if none were counted."""
    if not counted:
        return ()
    if rule.reads is None or rule.writes is None:
        return "–", "–"
    return f"{rule.promised_reads + rule.promised_writes:,}", f"{rule.reads + rule.writes:,}"


def plan_check(check: Check) -> RenderableType:
    """Return what a plan promised and what was counted, one row per rule, most memory first."""
    verdict = "kept" if check.kept else "broken"
    so_far = ", as far as it was checked" if check.unchecked_bytes else ""
    head = Text(f"The plan's promise is {verdict}{so_far}  [counted]", style="bold")
    ranked = sorted(check.rules, key=lambda rule: -rule.weight)
    heads = ["Site", "Tier", "Promised", "Allocated", "Pages asked", "Misplaced"]
    counted = any(rule.reads is not None for rule in check.rules)
    heads += [*(["Traffic promised", "Traffic"] if counted else []), "Verdict"]
    rows = [
        [
            rule.at or f"rule {rule.rule}",
            rule.tier,
            format_size(rule.promised_bytes),
            format_size(rule.allocated_bytes),
            f"{rule.pages:,}",
            f"{rule.misplaced_pages:,}",
            *_traffic(rule, counted=counted),
            rule.broken or "kept",
        ]
        for rule in ranked[:MAX_RULES]
    ]
    table = columns(heads, rows, 2)
    notes = [*_notes_on(check), *_hidden(ranked[MAX_RULES:])]
    notes.append(_PAGES_FROM_OUTSIDE if check.matched_share is None else _PAGES_BY_LIBRARY)
    return Group(head, Text(_finding(check)), Text(""), table, Text(""), *notes)


#: Note on the counted pages of a program with the library.
_PAGES_BY_LIBRARY = Text(
    "· pages asked are a sample whose nodes the kernel reported: 64 to 1,024 of a mapping, 16 or "
    "one in 64 of a block",
    style="dim",
)
#: Note on the counted pages of a program that was placed from outside.
_PAGES_FROM_OUTSIDE = Text(
    "· all pages in memory at the last look; allocated is memory in use then", style="dim"
)


def _finding(check: Check) -> str:
    """Which fraction of the memory is as promised, and what else is known of it."""
    part = "checked memory" if check.unchecked_bytes else "memory"
    found = f"{check.kept_share:.1%} of the {part} is as promised; at least 95% are required"
    if check.matched_share is None:
        return f"{found}. Pages were moved from outside"
    found += f". {check.matched_share:.1%} of the heap's bytes were allocated at its sites"
    if check.matched_mapping_share is not None:
        found += f", {check.matched_mapping_share:.1%} of the mapped bytes by its calls"
    return found


def _notes_on(check: Check) -> list[Text]:
    notes = [Text(f"· {why}") for why in check.broken]
    if check.near_traffic_share is not None and check.promised_near_traffic_share is not None:
        notes.append(
            Text(
                f"· {check.near_traffic_share:.1%} of the heap's traffic is near, "
                f"{check.promised_near_traffic_share:.1%} were promised; traffic is lines read and "
                "written, counted in a traced run",
                style="dim",
            )
        )
    return notes


def _hidden(rules: Sequence[RuleCheck]) -> list[Text]:
    if not rules:
        return []
    weight = min(sum(rule.weight for rule in rules), 1.0)
    broken = sum(bool(rule.broken) for rule in rules)
    return [
        Text(
            f"· and {len(rules)} more rules with {weight:.1%} of the memory, {broken} of them "
            "broken; all of them in --json FILE",
            style="dim",
        )
    ]
