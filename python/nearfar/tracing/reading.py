"""Read a trace's statistics as Python values."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nearfar._native import TraceFrame, TraceSite, TraceStats

#: Counted directly; all other counts are results of modeled caches.
_COUNTED = ("instructions", "loads", "stores", "nt_stores", "flushes")


def place(frame: TraceFrame) -> str:
    """``PATH+0xOFFSET``, as verify.symbols takes it; empty for no frame."""
    path = os.fsdecode(frame["path"])
    return f"{path}+{frame['offset']:#x}" if path else ""


def plan_frame(frame: TraceFrame) -> str:
    """A frame in the syntax of plans: build-id, or the name of the object, and the offset."""
    path = os.fsdecode(frame["path"])
    return f"{frame['build_id'] or 'name:' + Path(path).name}+{frame['offset']:#x}"


@dataclass(frozen=True)
class SiteSummary:
    """One site, with its source line if the program has line information."""

    site: TraceSite
    source: str

    def lines(self) -> int:
        """Lines read from memory and written to it."""
        return sum(self.site["records"].values())

    def title(self) -> str:
        """A title: source line, or file and offset, or kind of memory."""
        frames = self.site["frames"]
        if self.site["kind"] == "heap" and frames:
            first = frames[0]
            file = Path(os.fsdecode(first["path"])).name
            return Path(self.source).name or (
                f"{file}+{first['offset']:#x}" if file else hex(first["offset"])
            )
        if self.site["kind"] == "statics" and frames:
            return f"static data of {Path(os.fsdecode(frames[0]['path'])).name}"
        return {"stack": "stacks", "mapping": "mapped memory"}.get(self.site["kind"], "unknown")

    def document(self) -> dict[str, Any]:
        """The site as JSON."""
        site = self.site
        frames = [plan_frame(frame) for frame in site["frames"]]
        fields: dict[str, Any] = {"kind": site["kind"], "title": self.title()}
        if site["kind"] == "heap":
            fields["site"] = "<".join(frames)
            if self.source:
                fields["source"] = self.source
        for key in ("allocations", "allocated_bytes", "peak_bytes", "touched_objects"):
            fields[key] = site[key]
        return {**fields, **site["records"]}


def summaries(stats: TraceStats) -> list[SiteSummary]:
    """The sites by number of lines, largest first; merged by source line if known."""
    from nearfar.verify.symbols import source_lines

    heap = {place(s["frames"][0]) for s in stats["sites"] if s["kind"] == "heap" and s["frames"]}
    lines = source_lines(sorted(heap - {""}))
    found = [
        SiteSummary(site, lines.get(place(site["frames"][0]), "") if site["frames"] else "")
        for site in stats["sites"]
    ]
    touched = [one for one in found if one.lines() or one.site["allocations"]]
    return sorted(touched, key=lambda one: (-one.lines(), -one.site["allocated_bytes"]))


def fields(stats: TraceStats, key: str) -> list[str]:
    """All values of a key of the header."""
    return [
        value.decode(errors="replace")
        for name, value in stats["fields"]
        if name.decode(errors="replace") == key
    ]


def document(stats: TraceStats, file: Path) -> dict[str, Any]:
    """The JSON of ``nearfar trace stats``."""
    counts = {
        **stats["totals"],
        "records": stats["records"],
        "dependent": stats["dependent"],
        "size_bytes": file.stat().st_size,
    }
    header = {key: (fields(stats, key) or [""])[0] for key in ("recorder", "host", "prefetch")}
    return {
        "verb": "trace stats",
        "file": str(file),
        **counts,
        "complete": stats["complete"],
        "exit_code": stats["exit_code"],
        "ending": stats["ending"],
        "after": stats["after"],
        "line_bytes": stats["line_bytes"],
        **header,
        **{key: value[0] for key in ("l1", "l2", "llc", "tlb") if (value := fields(stats, key))},
        "program": fields(stats, "program"),
        "not_traced": fields(stats, "not_traced"),
        "threads": len(stats["threads"]),
        "processes": len(set(stats["threads"])),
        "kinds": dict(stats["kinds"]),
        "sites": [one.document() for one in summaries(stats)],
        "provenance": {key: "measured" if key in _COUNTED else "simulated" for key in counts},
    }
