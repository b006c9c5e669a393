"""Findings of ``crash lint`` in the terminal, as compilers print theirs."""

from __future__ import annotations

from rich.text import Text

from nearfar.report.terminal.crash import verbatim
from nearfar.verify.lint import RULES, LintFinding, LintResult

#: Calls that are shown of each stack, and other ways to a finding; the JSON document has all.
_CALLS, _WAYS = 4, 4


def findings(result: LintResult) -> Text:
    """Return each finding, errors first, then their number."""
    notes = len(result.findings) - result.errors
    counts = f"{_count(result.errors, 'error')}, {_count(notes, 'note')}"
    tail = ""
    if result.incomplete or result.program_failed:
        why = "the recording is incomplete" if result.incomplete else "the program failed"
        tail = f"; {why}" if result.errors else f"; inconclusive: {why}"
    elif not result.findings:
        tail = "; `nearfar crash run` tests what a crash leaves"
    return verbatim(
        *map(_line, result.findings), f"{counts} in {result.events:,} recorded events{tail}"
    )


def _line(finding: LintFinding) -> str:
    times = f" ({finding.times:,} times)" if finding.times > 1 else ""
    place = finding.place or "unknown place"
    level = RULES[finding.rule].level
    outward = "".join(f"\n  inlined into {line}" for line in finding.inlined_into)
    if finding.calls:
        outward += f"\n  first called from {_some(finding.calls)}"
    for way in finding.other_calls[:_WAYS]:
        outward += f"\n  also called from {', '.join(way)}"
    if len(finding.other_calls) > _WAYS:
        outward += f"\n  and in {_count(len(finding.other_calls) - _WAYS, 'more way')}"
    return f"{place}: {level}: {finding.sentence()} [{finding.rule}]{times}{outward}"


def _some(calls: tuple[str, ...]) -> str:
    # The recorder keeps no more than 16 calls, so that the number is not known.
    rest = ", and further out" if len(calls) > _CALLS else ""
    return ", ".join(calls[:_CALLS]) + rest


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
