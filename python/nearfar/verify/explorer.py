"""Run the native explorer and parse its output (native/crash/tool/output.hpp)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from nearfar.errors import BadInputError, MachineError
from nearfar.process.helpers import shipped
from nearfar.verify.findings import BlamedLine, CrashCount, Exploration, Finding
from nearfar.verify.interruption import INTERRUPTED, asking_once
from nearfar.verify.recorder import NothingRecordedError, Turn
from nearfar.verify.symbols import Reached, source_frames

#: Called with (states, upper bound of states left, violations, completed fraction of the work).
Progress = Callable[[int, float, int, float], None]


def explore(
    command: str, arguments: Mapping[str, object], progress: Progress | None = None
) -> Exploration:
    """Run one command of the explorer to its end."""
    result = Exploration()
    for kind, fields in tool_output(command, arguments):
        if kind == "progress" and progress is not None:
            progress(int(fields[0]), float(fields[1]), int(fields[2]), float(fields[3]))
        elif kind == "interrupted":
            result.interrupted = True
            result.warnings.append(INTERRUPTED)
        elif kind == "log":
            _, warnings = recorded_log(fields)
            result.recording_cut_short = bool(warnings)
            result.warnings += warnings
        elif kind == "reopening":
            result.reopening = _reopening(*map(int, fields))
        elif kind == "doubt":
            result.doubtful = int(fields[0])
            result.warnings.append(
                f"{result.doubtful:,} images ended with an expected code, but said something else "
                f"than undamaged pools, the first of them: {fields[1] or 'nothing'}"
            )
        elif kind == "unplaced":
            result.unplaced.add(int(fields[0]))
        elif kind == "unseen_flushes":
            result.unseen_flushes = True
        elif kind == "warning":
            result.warnings.append(fields[0])
        elif kind == "finding":
            result.findings.append(_finding(fields))
        elif kind == "line":
            store = reached(fields[2])
            line = BlamedLine(
                int(fields[0]), fields[1] == "1", store.place, store.caller, store.calls
            )
            result.findings[-1].lines.append(line)
        elif kind == "operation":
            result.findings[-1].operations.append(int(fields[0]))
        elif kind == "crash":
            states, left, violations = int(fields[1]), float(fields[2]), int(fields[3])
            result.crashes.append(CrashCount(fields[0], states, left, violations))
        elif kind == "result":
            _take_counts(result, fields)
    return result


def _reopening(inspected: int, started: int, *expected: int) -> dict[str, object]:
    return {"inspected": bool(inspected), "started": bool(started), "expected": list(expected)}


def _take_counts(result: Exploration, fields: Sequence[str]) -> None:
    result.states, result.points = int(fields[0]), int(fields[2])
    result.states_left = float(fields[1])
    result.violations, result.recovery_states = int(fields[3]), int(fields[4])
    result.time_s, result.confirmed = float(fields[5]), int(fields[6])
    result.stores, result.stores_tried = int(fields[7]), int(fields[8])
    result.cut_off = fields[9] == "1"
    result.places, result.places_tried = int(fields[10]), int(fields[11])


def turns(log: Path) -> list[Turn]:
    """Interleavings of created threads, from a log without any."""
    return [
        Turn(int(f[0]), int(f[1]), reached(f[2]).place)
        for kind, f in tool_output("turns", {"log": log})
        if kind == "turn"
    ]


def call_sites(arguments: Mapping[str, object]) -> list[tuple[str, str, list[str]]]:
    """(flush, fence or log; FILE:LINE; stores it covers) of every call in a recorded trace."""
    return [(f[0], f[1], f[2:]) for kind, f in tool_output("sites", arguments) if kind == "site"]


def recorded_log(fields: list[str]) -> tuple[int, list[str]]:
    """Number of events of a log, and why it is incomplete; nothing for a complete one."""
    return int(fields[0]), [fields[3]] if fields[2] == "0" else []


#: What the recorder writes for code that it does not know.
_UNKNOWN = "unknown:0"
#: And for code that lies in no file (native/crash/library.hpp).
_GENERATED = "[generated code]"


def place_of(location: str) -> str:
    """FILE:LINE or MODULE+0xOFFSET; empty if unknown."""
    if location.startswith(_GENERATED):
        return _GENERATED
    return "" if location.startswith(":") or location == _UNKNOWN else location


def _finding(fields: list[str]) -> Finding:
    store, before, at = (reached(fields[number]) for number in (3, 4, 15))
    flags = [value == "1" for value in fields[7:10]]
    return Finding(
        fields[0],
        fields[1],
        fields[2],
        store.place,
        before.place,
        int(fields[5]),
        int(fields[6]),
        flags[0],
        flags[1],
        flags[2],
        int(fields[10]),
        int(fields[11]),
        fields[12],
        store_caller=store.caller,
        store_calls=store.calls,
        before_caller=before.caller,
        caches_lost=fields[13],
        crash_before=fields[14],
        crash_at=at.own(),
    )


#: Modules whose own code says little: the program's call of them does.
_LIBRARY = re.compile(
    r"((.*/)?(libpmem(2|obj|log|blk|pool)?(-[0-9a-f]{8})?\.so|libc\.so|libpthread|libstdc\+\+|"
    r"libnearfar-crash-heap)[^/]*|\[vdso\])"
    r"\+0x[0-9a-f]+|\[generated code\]"
)


def reached(location: str) -> Reached:
    """From the text of the native tool: each place, then where it was called from."""
    places = [place_of(place) for place in location.split(" called from ")]
    own = next((at for at, place in enumerate(places) if not _LIBRARY.fullmatch(place)), 0)
    return Reached(places[0], places[own] if own else "", tuple(places[own + 1 :]))


def tool_output(command: str, arguments: Mapping[str, object]) -> Iterator[tuple[str, list[str]]]:
    """Kind and fields of each line that a command of the native tool prints.

    Raises BadInputError and MachineError as the tool reports them.
    """
    typed = [f"{key}={value}" for key, value in arguments.items()]
    with subprocess.Popen(
        [shipped("nearfar-crash"), command, *typed],
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        process_group=0,
    ) as process:
        assert process.stdout is not None
        try:
            reports = command in ("check", "run")
            with asking_once(lambda _: process.terminate()) if reports else nullcontext() as asked:
                unseen_bytes = None  # of a log without a store
                for line in process.stdout:
                    kind, *fields = line.rstrip("\n").split("\t")
                    if kind == "nothing":
                        unseen_bytes = int(fields[0])
                        continue
                    if kind == "error":
                        error = BadInputError if fields[0] == "2" else MachineError
                        refused = error(fields[1], fields[2])
                        if unseen_bytes is None:
                            raise refused
                        raise NothingRecordedError(refused, unseen_bytes)
                    yield kind, fields
            if asked:
                yield "interrupted", []
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise MachineError(
            f"the explorer ended with {process.returncode}", "report it with your command line"
        )


def with_lines(result: Exploration) -> None:
    """Replace code addresses in findings by source lines, if the programs have them."""

    def all_places(finding: Finding) -> list[str]:
        own = [finding.store, finding.store_caller, finding.before, finding.before_caller]
        own += [finding.held, finding.crash_at, *finding.store_calls]
        return own + [
            place for line in finding.lines for place in (line.store, line.caller, *line.calls)
        ]

    known = source_frames({place for f in result.findings for place in all_places(f)})

    def named(place: str) -> str:
        return known.get(place, [place])[0]

    def with_names(line: BlamedLine) -> BlamedLine:
        at = Reached(line.store, line.caller, line.calls).with_lines(known)
        return replace(line, store=at.place, caller=at.caller, calls=at.calls)

    def with_own(finding: Finding) -> Finding:
        at = Reached(finding.store, finding.store_caller, finding.store_calls).with_lines(known)
        return replace(
            finding,
            store=at.place,
            store_caller=at.caller,
            store_calls=at.calls,
            before=named(finding.before),
            before_caller=named(finding.before_caller),
            held=named(finding.held),
            crash_at=named(finding.crash_at),
            inlined_into=tuple(known.get(finding.store, [])[1:]),
            lines=[with_names(line) for line in finding.lines],
        )

    result.findings = _merged([with_own(finding) for finding in result.findings])


def _merged(findings: list[Finding]) -> list[Finding]:
    """One finding for each cause: the compiler can make several code addresses of a line. The image
    of the first that has one is kept."""
    first: dict[tuple[object, ...], Finding] = {}
    for number, finding in enumerate(findings):
        cause: tuple[object, ...] = (number,)
        if finding.store:
            cause = (finding.failure, finding.sentence(), finding.store_calls, finding.held)
            cause = (*cause, finding.caches_lost, finding.during_recovery)
        known = first.get(cause)
        if known is None:
            first[cause] = finding
            continue
        violations = known.violations + finding.violations
        first[cause] = replace(known, violations=violations, image=known.image or finding.image)
        if known.image and finding.image:
            Path(finding.image).unlink(missing_ok=True)
    return list(first.values())
