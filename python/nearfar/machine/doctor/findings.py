"""Constructors of findings, by severity."""

from __future__ import annotations

from nearfar.machine.root import Look
from nearfar.records.run import Finding


def ok(check: str, found: str) -> Finding:
    """Nothing to fix."""
    return Finding(check=check, level="ok", found=found)


def note(check: str, found: str, why: str = "", fix: str = "") -> Finding:
    """Useful for interpreting figures; not a fault."""
    return Finding(check=check, level="note", found=found, why=why, fix=fix)


def warning(check: str, found: str, why: str, fix: str) -> Finding:
    """Disturbs figures, or hides what they mean."""
    return Finding(check=check, level="warning", found=found, why=why, fix=fix)


def unknown(check: str, look: Look, why: str, fix: str = "") -> Finding:
    """The file with the information is missing or not readable."""
    return Finding(check=check, level="unknown", found=look.trouble, why=why, fix=fix)


def chosen(text: str) -> str:
    """The word in brackets of ``always [madvise] never``; the whole text if there is none."""
    _, bracket, rest = text.partition("[")
    return rest.partition("]")[0] if bracket else text
