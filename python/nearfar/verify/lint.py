"""Findings in the recorded stores and flushes of a program (native/crash/lint.hpp)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from nearfar.errors import ExitCode
from nearfar.verify.explorer import reached, recorded_log, tool_output
from nearfar.verify.findings import exit_code_of
from nearfar.verify.symbols import Reached, source_frames

#: Calls by which the recorder distinguishes the ways to a place (native: Callers::most).
_WAY = 3
#: Rules that stores break which are not made durable.
_NEED_FLUSH = ("unflushed", "unfenced")
#: Stores of the C library's locks: a lock in a pool is initialized anew when the pool is opened.
_LOCKS = re.compile(r"\w*(pthread_|lll_)\w* \((libc|libpthread)[-.]")


@dataclass(frozen=True)
class LintRule:
    """A rule. ``says``: the message, in which {other} becomes " at PLACE", or nothing."""

    level: Literal["error", "note"]  # errors lose data; notes cost time, or may be intended
    title: str
    says: str


RULES = {
    "unflushed": LintRule("error", "A store is never flushed", "this store is never flushed"),
    "unfenced": LintRule(
        "error",
        "A store is flushed, but no fence follows",
        "this store is flushed{other}, but no fence of that thread follows",
    ),
    "unlogged": LintRule(
        "error",
        "A transaction stores what it does not log",
        "this store is in a transaction that does not log its bytes: an abort cannot undo it",
    ),
    "late_log": LintRule(
        "error",
        "A transaction logs what it has stored before",
        "the bytes of this store are logged only afterwards{other}: the log holds the new value",
    ),
    "short_log": LintRule(
        "error",
        "A transaction logs a part of a store",
        "only a part of the bytes of this store is logged{other}",
    ),
    "freed_store": LintRule(
        "error", "A store to a freed object", "this store is to an object that is freed{other}"
    ),
    "unended": LintRule(
        "error",
        "A transaction does not end",
        "the transaction that begins here never ends: nothing of it is durable",
    ),
    "repeated_flush": LintRule(
        "note",
        "A flush repeats another",
        "this flush is of lines that only await a fence: nothing was stored since",
    ),
    "needless_flush": LintRule(
        "note",
        "A flush of durable lines",
        "this flush is of lines that are durable: nothing was stored since",
    ),
    "repeated_log": LintRule(
        "note",
        "A log call repeats another",
        "this call logs bytes that the transaction has logged or allocated",
    ),
    "unlogged_flush": LintRule(
        "note",
        "A transaction flushes what it does not log",
        "the transaction flushes this store itself and does not log it: an abort cannot undo it",
    ),
    "unchanged": LintRule(
        "note",
        "A store of what was there is never flushed",
        "this store is never flushed; in this run it stored what was there",
    ),
}


@dataclass(frozen=True)
class LintFinding:
    """A rule that a place of the program breaks, ``times`` times."""

    rule: str
    place: str  # FILE:LINE, or MODULE+0xOFFSET; of a library, where the program called it
    other: str  # the flush or log call that the rule is about; empty if there is none
    address: int  # offset in the pool, of the first occurrence
    bytes: int
    times: int
    library: str = ""  # the place in the library or system header that was called; or empty
    inlined_into: tuple[str, ...] = ()  # FILE:LINE of the calls of inlined functions, outward
    calls: tuple[str, ...] = ()  # of the program, that led to the place first, innermost first
    other_calls: tuple[tuple[str, ...], ...] = ()  # the last calls of other ways to the fault

    def sentence(self) -> str:
        """What is wrong."""
        other = f" at {self.other}" if self.other else ""
        within = f" (in {self.library})" if self.library else ""
        return RULES[self.rule].says.format(other=other) + within


@dataclass
class LintResult:
    """All findings in one recorded run, errors first."""

    findings: list[LintFinding] = field(default_factory=list)
    events: int = 0
    warnings: list[str] = field(default_factory=list)
    incomplete: bool = False  # the log is truncated, or does not have all stores
    program_failed: bool = False
    interrupted: bool = False
    unseen_flushes: bool = False  # the program has flushes that the recorder did not see

    @property
    def errors(self) -> int:
        """Findings that lose data."""
        return sum(RULES[finding.rule].level == "error" for finding in self.findings)

    @property
    def verdict(self) -> str:
        """``clean``: the run is complete and has no error; ``inconclusive``: neither."""
        if any(self._is_certain(finding) for finding in self.findings):
            return "violation"
        if self.errors:
            return "inconclusive"
        return "inconclusive" if self.incomplete or self.program_failed else "clean"

    def _is_certain(self, finding: LintFinding) -> bool:
        if self.unseen_flushes and finding.rule in _NEED_FLUSH:
            return False
        return RULES[finding.rule].level == "error"

    def exit_code(self) -> ExitCode:
        """The exit code of the verdict."""
        return ExitCode.INTERRUPTED if self.interrupted else exit_code_of(self.verdict)

    def document(self) -> dict[str, object]:
        """The JSON document."""
        return {
            "verdict": self.verdict,
            "events": self.events,
            "errors": self.errors,
            "findings": [
                {"level": RULES[f.rule].level, "message": f.sentence(), **asdict(f)}
                for f in self.findings
            ],
            "warnings": self.warnings,
        }


def lint(log: Path, judge: Path) -> LintResult:
    """Read what the recorder's judge left. Raises BadInputError if nothing was stored."""
    result = LintResult()
    for kind, fields in tool_output("lint", {"log": log, "judge": judge}):
        if kind == "log":
            result.events, result.warnings = recorded_log(fields)
            result.incomplete = bool(result.warnings)
        elif kind == "unseen_flushes":
            result.unseen_flushes = True
        elif kind == "warning":
            result.warnings.append(fields[0])
        elif kind == "lint":
            at, other = map(reached, fields[1:3])
            address, size, times = map(int, fields[3:6])
            result.findings.append(
                LintFinding(fields[0], at.own(), other.own(), address, size, times, _library(at))
            )
        elif kind == "call":
            found = result.findings[-1]
            result.findings[-1] = replace(found, calls=(*found.calls, fields[0]))
    result.findings = _merged(_with_lines(result.findings))
    result.findings = sorted(
        (f for f in result.findings if not _LOCKS.match(f.library or f.place)), key=_order
    )
    result.incomplete |= result.unseen_flushes and any(
        f.rule in _NEED_FLUSH for f in result.findings
    )
    if any(not f.place for f in result.findings):
        # Nor is its kind known: a non-temporal store needs no flush.
        result.findings = [f for f in result.findings if f.place or f.rule not in _NEED_FLUSH]
        result.incomplete = True
        result.warnings.append(
            "a store has no place: another thread stored to the same page at that moment; "
            "--recorder instrumented knows the place"
        )
    return result


def _order(finding: LintFinding) -> tuple[int, str, int]:
    """Errors first, each rule by file and line."""
    file, _, line = finding.place.rpartition(":")
    return list(RULES).index(finding.rule), file, int(line) if line.isdecimal() else 0


def _merged(findings: Iterable[LintFinding]) -> list[LintFinding]:
    """One finding for each rule and line: a line may have several stores, and be reached by
    several calls."""
    found: dict[tuple[object, ...], LintFinding] = {}
    for f in findings:
        key = (f.rule, f.place, f.other, f.inlined_into)
        known = found.get(key)
        found[key] = _joined(known, f) if known else f
    short = {(f.place, f.inlined_into) for f in found.values() if f.rule == "short_log"}
    # Of one copy, the compiler makes several stores; the log has bytes of some.
    return [
        f for f in found.values() if f.rule != "unlogged" or (f.place, f.inlined_into) not in short
    ]


def _joined(first: LintFinding, again: LintFinding) -> LintFinding:
    known = (first.calls[:_WAY], *first.other_calls)
    way = again.calls[:_WAY]
    others = first.other_calls if not way or way in known else (*first.other_calls, way)
    return replace(first, times=first.times + again.times, other_calls=others)


def _library(at: Reached) -> str:
    """The place that the program called, if that is not its own."""
    return at.place if at.caller else ""


def _with_lines(findings: Iterable[LintFinding]) -> list[LintFinding]:
    """The findings with source lines for code addresses, where the programs have them."""
    found = list(findings)
    known = source_frames(
        {place for f in found for place in (f.place, f.library, f.other, *f.calls)}
    )

    def named(f: LintFinding) -> LintFinding:
        at = Reached(f.library, f.place, f.calls) if f.library else Reached(f.place, "", f.calls)
        at = at.with_lines(known)
        return replace(
            f,
            place=at.own(),
            other=known.get(f.other, [f.other])[0],
            library=_library(at),
            inlined_into=tuple(known.get(f.place, [])[1:]),
            calls=at.calls,
        )

    return [named(finding) for finding in found]
