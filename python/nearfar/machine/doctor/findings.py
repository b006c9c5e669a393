"""How a check speaks: short makers of findings, and the case of a file that cannot be read."""

from __future__ import annotations

from nearfar.machine.root import Look
from nearfar.records.run import Finding


def ok(check: str, found: str) -> Finding:
    """Nothing to mend."""
    return Finding(check=check, level="ok", found=found)


def note(check: str, found: str, why: str = "", mend: str = "") -> Finding:
    """Worth knowing when figures are read; not a fault."""
    return Finding(check=check, level="note", found=found, why=why, mend=mend)


def warning(check: str, found: str, why: str, mend: str) -> Finding:
    """Spoils figures, or hides what they mean."""
    return Finding(check=check, level="warning", found=found, why=why, mend=mend)


def unknown(check: str, look: Look, why: str, mend: str = "") -> Finding:
    """The file that would tell is missing or withheld."""
    return Finding(check=check, level="unknown", found=look.trouble, why=why, mend=mend)


def chosen(text: str) -> str:
    """The word in brackets of ``always [madvise] never``; the whole text if there is none."""
    _, bracket, rest = text.partition("[")
    return rest.partition("]")[0] if bracket else text
