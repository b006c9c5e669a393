"""Where the memory of a program was allocated."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.place.checking import Check, RuleCheck
from nearfar.place.run_statistics import Process, RunStatistics
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


def _table(process: Process) -> RenderableType:
    rows = [
        [
            tier,
            *(f"{counts.get(key, 0):,}" for key in _COUNTS),
            *(format_size(counts.get(key, 0)) for key in _BYTES),
        ]
        for tier, counts in process.tiers.items()
    ]
    return columns(_HEADS, rows, 1)


def _traffic(rule: RuleCheck) -> tuple[str, str]:
    """Return lines read and written, as promised and as counted."""
    if rule.reads is None or rule.writes is None:
        return "–", "–"
    return f"{rule.promised_reads + rule.promised_writes:,}", f"{rule.reads + rule.writes:,}"


def plan_check(check: Check) -> RenderableType:
    """Return what a plan promised and what was counted, one row per rule."""
    verdict = "kept" if check.kept else "broken"
    head = Text(f"The plan's promise is {verdict}  [counted]", style="bold")
    finding = Text(f"{check.matched_share:.1%} of the heap's bytes were allocated at its sites")
    if check.matched_mapping_share is not None:
        finding.append(f", {check.matched_mapping_share:.1%} of the mapped bytes by its calls")
    heads = ["Site", "Tier", "Promised", "Allocated", "Pages", "Misplaced"]
    heads += ["Traffic promised", "Traffic", "Verdict"]
    rows = [
        [
            rule.at or f"rule {rule.rule}",
            rule.tier,
            format_size(rule.promised_bytes),
            format_size(rule.allocated_bytes),
            f"{rule.pages:,}",
            f"{rule.misplaced_pages:,}",
            *_traffic(rule),
            rule.broken or "kept",
        ]
        for rule in check.rules[:MAX_RULES]
    ]
    notes = _notes_on(check)
    return Group(head, finding, Text(""), columns(heads, rows, 2), Text(""), *notes)


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
    more = len(check.rules) - MAX_RULES
    if more > 0:
        notes.append(Text(f"· and {more} more rules, all of them in --json FILE", style="dim"))
    return [*notes, Text("· pages are those whose node the kernel reported", style="dim")]
