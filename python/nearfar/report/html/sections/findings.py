"""Findings of doctor on this machine."""

from __future__ import annotations

from nearfar.records.run import Finding
from nearfar.report.html.section import Cell, Context, Section, Table
from nearfar.report.wording import count

_ORDER = ("warning", "note", "unknown", "ok")
_TONE = {"warning": "bad", "ok": "good"}


def section(context: Context) -> Section | None:
    """Return the section, or None if doctor did not run."""
    found = sorted(context.run.findings, key=lambda f: _ORDER.index(f.level))
    if not found:
        return None
    open_ones = [f for f in found if f.level != "ok"]
    fine = [f for f in found if f.level == "ok"]
    heads = ["Check", "", "Finding and effect", "Fix"]
    fine_caption = f"{count(len(fine), 'check')} without findings"
    tables = [
        Table(heads, _rows(open_ones), stacked=True),
        Table(heads, _rows(fine), fine_caption, folded=True, stacked=True),
    ]
    return Section(
        "findings",
        "What can disturb measurements on this machine",
        _finding(found),
        tables=[table for table in tables if table.rows],
    )


def _finding(found: list[Finding]) -> str:
    warnings = [f.check for f in found if f.level == "warning"]
    if not warnings:
        return f"None of {count(len(found), 'check')} warns."
    named = ", ".join(warnings[:4]) + (" and others" if len(warnings) > 4 else "")
    verb = "warns" if len(warnings) == 1 else "warn"
    return f"{len(warnings)} of {count(len(found), 'check')} {verb}: {named}."


def _rows(found: list[Finding]) -> list[list[Cell]]:
    return [
        [
            Cell(f.check),
            Cell(f.level, tone=_TONE.get(f.level, "")),
            Cell(f.found, f.why),
            Cell(f.fix),
        ]
        for f in found
    ]
