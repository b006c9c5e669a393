"""Traces: record a program, read a trace, exchange traces with other simulators."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearfar.errors import BadInputError
from nearfar.tracing.recording import NewTrace, Recorded, ending_of
from nearfar.tracing.recording import record as record_accesses
from nearfar.tracing.truncated import refuse_unfinished, truncation

if TYPE_CHECKING:
    from nearfar._native import TraceRow, TraceStats
    from nearfar.measure.progress import ProgressSource
    from nearfar.records.choices import TraceFormat, TraceLevel, TraceRecorder


#: Keys that the JSON omits: `totals`, whose members are merged into it, and those for `advise`.
_NOT_IN_JSON = {"totals", "touched", "touches"}


@dataclass(frozen=True)
class CachesWanted:
    """The caches behind which accesses are recorded.

    ``after``: the last one, by default that of the host; ``replaced``: SIZE/WAYS by level;
    ``remeasure``: measure this machine again.
    """

    host: str = "this"
    after: TraceLevel | None = None
    prefetch: bool = True
    replaced: dict[str, str | None] = field(default_factory=dict)
    remeasure: bool = False


@dataclass(frozen=True)
class Traced:
    """A trace that was recorded: its file, and how the program ended."""

    file: Path
    recorded: Recorded

    @property
    def exit_code(self) -> int:
        """Exit code of the program; 128 plus the number of the signal that ended it."""
        return self.recorded.code

    @property
    def notes(self) -> list[str]:
        """Facts that a reader of the trace must know."""
        return self.recorded.notes

    def document(self) -> dict[str, Any]:
        """The JSON document of the verb."""
        summary = {
            **self.recorded.collected,
            **self.recorded.collected["totals"],
            "programs": [{"path": path, "instructions": n} for path, n in self.recorded.programs()],
            "exit_code": self.exit_code,
            "file": str(self.file),
        }
        return {key: value for key, value in summary.items() if key not in _NOT_IN_JSON}


def record(
    program: Sequence[str],
    output: Path,
    caches_wanted: CachesWanted,
    progress: ProgressSource,
    *,
    recorder: TraceRecorder = "qemu",
    aside: bool = False,
) -> Traced:
    """Record a program's accesses; ``aside``: its standard output goes to standard error."""
    from nearfar.tracing.caches import caches_of
    from nearfar.workflows.host_here import HostChoice, host_for
    from nearfar.workflows.recording import open_session

    after, replaced = caches_wanted.after, caches_wanted.replaced
    choice = HostChoice(caches_wanted.host, caches_wanted.remeasure, replaced.get("llc"))
    with open_session(progress) as session:
        caches = caches_of(host_for(choice, session), replaced)
    if after == "llc" and caches.llc is None:
        raise BadInputError("the host has no third cache level", "give --after l2, the last level")
    done = record_accesses(
        list(program),
        output,
        caches,
        host=caches_wanted.host,
        after=after or caches.last,
        prefetch=caches_wanted.prefetch,
        recorder=recorder,
        aside=aside,
    )
    return Traced(output, done)


@dataclass(frozen=True)
class Exchanged:
    """A trace that was converted."""

    file: Path
    reads: int
    writes: int
    ending: str = ""  # why the source was read in part only


def import_trace(source: Path, form: TraceFormat, output: Path) -> Exchanged:
    """Write another simulator's trace as a trace of nearfar; no file is overwritten."""
    from nearfar._native import trace_import

    with NewTrace(output) as trace:
        done = trace_import(str(source), trace.fd, form)
        trace.keep()
    return Exchanged(output, done["reads"], done["writes"])


def export_trace(
    source: Path, form: TraceFormat, output: Path, *, truncated: bool = False
) -> Exchanged:
    """Write a trace for another simulator; no file is overwritten.

    ``truncated``: accept a trace whose end is missing or damaged.
    """
    from nearfar._native import trace_export

    if not truncated:
        refuse_unfinished(source)
    try:
        fd = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise BadInputError(
            f"cannot create {output}: {error.strerror}", "name a new file after -o"
        ) from None
    try:
        done = trace_export(str(source), fd, form)
        if done["ending"] and not truncated:
            raise truncation(source, done["ending"])
    except BaseException:
        output.unlink()
        raise
    finally:
        os.close(fd)
    return Exchanged(output, done["reads"], done["writes"], done["ending"])


@dataclass(frozen=True)
class Counted:
    """The content of a trace, counted."""

    file: Path
    stats: TraceStats

    @property
    def notes(self) -> list[str]:
        """Damage of the file, and a failure of the program."""
        code = self.stats["exit_code"]
        failed = [f"nearfar: {self.file}: the program {ending_of(code)}"] if code else []
        return self.damage + failed

    @property
    def damage(self) -> list[str]:
        """Why the counts cover only a part of the file, if they do."""
        ending = self.stats["ending"]
        return [f"nearfar: {self.file}: {ending}"] if ending else []

    def document(self) -> dict[str, Any]:
        """The JSON document of the verb."""
        from nearfar.tracing.reading import document

        return document(self.stats, self.file)


def count(file: Path) -> Counted:
    """Count the content of a trace, up to its end or its first damage."""
    from nearfar._native import trace_stats

    return Counted(file, trace_stats(str(file)))


@dataclass(frozen=True)
class Lines:
    """Some lines of a trace, from a number on."""

    file: Path
    first: int
    rows: list[TraceRow]
    notes: list[str]

    def document(self) -> dict[str, Any]:
        """The JSON document of the verb."""
        from nearfar.tracing.reading import plan_frame

        kept = [
            {
                key: plan_frame(value) if key.endswith("frame") else value  # type: ignore[arg-type]
                for key, value in row.items()
            }
            | {"number": self.first + i}
            for i, row in enumerate(self.rows)
        ]
        return {"verb": "trace show", "file": str(self.file), "lines": kept}


def lines(file: Path, first: int, count: int) -> Lines:
    """Read lines of a trace."""
    from nearfar._native import trace_show

    found = trace_show(str(file), first, count)
    cut = found["ending"] and len(found["rows"]) < count
    notes = [f"nearfar: {file}: {found['ending']}"] if cut else []
    return Lines(file, first, found["rows"], notes)
