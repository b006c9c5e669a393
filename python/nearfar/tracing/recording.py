"""Run a program under a recorder, and write its accesses to a trace.

The recorder writes into an anonymous shared-memory ring, which is freed with this process; a native
thread, without Python's GIL, drains it, filters it and writes the file.
"""

from __future__ import annotations

import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearfar.errors import BadInputError, MachineError
from nearfar.files import partial_of
from nearfar.process.elf import ignores_preload
from nearfar.process.helpers import preloadable, shipped, without_preload
from nearfar.process.launch import StartError, run
from nearfar.process.program_file import program_file

if TYPE_CHECKING:
    from nearfar._native import TraceCollected
    from nearfar.tracing.caches import Caches, Level

EMULATOR = "qemu-x86_64"
_ALLOCATIONS = "libnearfar-trace-allocations.so"

#: Next step for tracing a program by instrumentation.
HOW_TO_INSTRUMENT = (
    "compile it with the flags that `nearfar trace flags` prints, and trace it with "
    "`nearfar trace --recorder instrumented`, which `nearfar sim` reads; `nearfar advise` "
    "does not support that recorder, but requires no emulator without --emulate"
)
#: Notes in the header on untraced accesses.
_UNTRACED_ALWAYS = (
    "what the kernel does for it",
    "fetches of instructions",
)
_UNTRACED_INSTRUMENTED = (
    "code that was not compiled with instrumentation, libraries above all",
    "how many instructions there were: accesses are counted in their place",
    "what clwb and clflush write back, and which stores go past the caches",
    "programs that it starts (exec): forked children are traced until they do",
)
_UNTRACED_EMULATED = (
    "child programs (exec) that the emulator cannot run",
    "which lines clwb and clflush write back: the emulator does not report their addresses",
)


@dataclass
class Recorded:
    """The result of a recording."""

    code: int
    collected: TraceCollected
    notes: list[str]
    failure: str  # how the program ended, if it failed; also among the notes
    cpu_s: float = 0.0  # of the recorder and of programs that it started
    cut: bool = False  # stopped after the time limit

    def programs(self) -> list[tuple[str, int]]:
        """The programs of the run and their instructions, most first."""
        return [(os.fsdecode(path), count) for path, count in self.collected["programs"]]

    def unseen_share(self, cpu_s: float) -> float:
        """Fraction of the program's CPU time in child programs (exec) that run untraced."""
        if not self.collected["executed"] or not cpu_s:
            return 0.0
        unseen_s = self.cpu_s - self.collected["recorded_cpu_ns"] * 1e-9
        return min(max(unseen_s / cpu_s, 0.0), 1.0)


class NewTrace:
    """A new trace file.

    It has a temporary name until ``keep``; leaving the context before that deletes it.
    """

    def __init__(self, path: Path) -> None:
        """Open it; no file is overwritten. Raises BadInputError, MachineError."""
        if path.is_file():
            raise BadInputError(f"{path} exists", "name a new file after -o, or remove it")
        try:
            self._target, self._partial = partial_of(path)
            self.fd = os.open(
                self._partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644
            )
        except OSError as error:
            raise _cannot_write(path, error) from None

    def keep(self) -> None:
        """Rename it to its final name.

        Raises MachineError; the temporary file is then deleted on exit.
        """
        try:
            if self._partial != self._target:
                self._partial.replace(self._target)
        except OSError as error:
            raise _cannot_write(self._target, error) from None
        self._partial = self._target

    def __enter__(self) -> NewTrace:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)
        if self._partial != self._target:
            self._partial.unlink(missing_ok=True)


def _cannot_write(path: Path, error: OSError) -> MachineError:
    return MachineError(f"cannot write {path}: {error.strerror}", "name another file after -o")


def is_elf(file: Path) -> bool:
    """Whether a file starts with the ELF magic."""
    with file.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"


def _without_scripts(program: list[str]) -> list[str]:
    """A command line with scripts replaced by their interpreters, as the kernel does."""
    for _ in range(4):
        file = program_file(program[0])
        program = [str(file), *program[1:]]
        with file.open("rb") as stream:
            head = stream.read(256)
        if not head.startswith(b"#!"):
            break
        words = head[2:].split(b"\n", 1)[0].decode(errors="replace").split(maxsplit=1)
        if not words:
            break
        if Path(words[0]).name == "env" and len(words) == 2 and not words[1].startswith("-"):
            words = words[1:]  # env itself would start the interpreter as another program
        program = [*words, *program]
    return program


def plugin_for_emulator() -> str:
    """The plug-in for the installed emulator. Raises MachineError without a suitable emulator."""
    if shutil.which(EMULATOR) is None:
        raise MachineError(
            f"{EMULATOR} is not installed", f"apt-get install qemu-user; or {HOW_TO_INSTRUMENT}"
        )
    if "-plugin" not in _printed_by("--help"):
        raise MachineError(
            f"{EMULATOR} was built without plug-ins, as that of Debian 13 is",
            "put one that was built with --enable-plugins on the PATH (docs/how-to/trace.md); or "
            + HOW_TO_INSTRUMENT,
        )
    found = re.search(r"version (\d+)\.(\d+)", _printed_by("--version"))
    return plugin_for((int(found[1]), int(found[2])) if found else (0, 0))


def plugin_for(version: tuple[int, int]) -> str:
    """The plug-in that an emulator of this version loads. Raises MachineError if none does."""
    if (6, 0) <= version < (9, 0):
        return "libnearfar-trace-qemu1.so"
    if version >= (9, 1):
        return "libnearfar-trace-qemu3.so"
    raise MachineError(
        f"version {version[0]}.{version[1]} of {EMULATOR} is not supported",
        f"install 6.0 to 8.2, or 9.1 or later; or {HOW_TO_INSTRUMENT}",
    )


def _printed_by(flag: str) -> str:
    done = subprocess.run([EMULATOR, flag], capture_output=True, text=True, check=False)
    return done.stdout


def emulated(program: Sequence[str], ring: str, notes: list[str]) -> tuple[list[str], list[str]]:
    """The command line that runs a program under the emulator; and further untraced parts.

    Raises MachineError if the emulator is missing, BadInputError for unsupported programs.
    """
    plugin = plugin_for_emulator()
    command = _without_scripts(list(program))
    file = Path(command[0])
    why = ignores_preload(file)
    if "64-bit" in why or not is_elf(file):
        raise BadInputError(why or f"{file} is not a program", "trace a program for 64-bit x86")
    untraced = list(_UNTRACED_EMULATED)
    emulator = [EMULATOR, "-cpu", "max", "-plugin", f"{preloadable(plugin)},ring={ring}"]
    if why:
        untraced.append(f"allocation sites: {why}")
        notes.append(f"{why}: accesses are attributed to mappings, not to allocation sites")
    else:
        for name, value in _preloaded().items():
            if "," in value:
                raise BadInputError(
                    f"LD_PRELOAD has a comma, which {EMULATOR} cannot pass on: {value}",
                    "remove that library from LD_PRELOAD, or link to it by another name",
                )
            emulator += ["-E", f"{name}={value}"]
    return [*emulator, *command], untraced


def _preloaded() -> dict[str, str]:
    """Variables that preload the allocation-recording library before the user's libraries."""
    others = os.environ.get("LD_PRELOAD", "")
    return {
        "LD_PRELOAD": f"{preloadable(_ALLOCATIONS)} {others}".rstrip(),
        "NEARFAR_TRACE_PRELOAD": others,
    }


def instrumentation_flags() -> str:
    """GCC flags for compiling and linking. Raises MachineError if the library is missing."""
    folder = shipped(_ALLOCATIONS).parent / "instrumented"
    return shlex.join(
        [
            "-fsanitize=thread",
            "--param=tsan-instrument-func-entry-exit=0",
            "-fno-omit-frame-pointer",
            f"-L{folder}",
            f"-Wl,-rpath,{folder}",
        ]
    )


def record(
    program: Sequence[str],
    output: Path,
    caches: Caches,
    *,
    host: str,
    after: str,
    prefetch: bool,
    recorder: str = "qemu",
    aside: bool = False,
    alone: bool = False,
    max_records: int = 0,
    limit_s: float | None = None,
    other_llcs: Sequence[Level] = (),
    stdin: str = os.devnull,
) -> Recorded:
    """Run a program and write its trace.

    ``aside``, ``alone`` and ``stdin`` are those of ``process.launch.run``. ``max_records``: above
    it, only evenly spaced windows are traced (0: no limit). ``limit_s``: the program is stopped
    after this many seconds. ``other_llcs``: further sizes of the last cache whose misses are
    counted.

    Raises BadInputError or MachineError before the start, NativeError if writing fails.
    """
    from nearfar._native import TraceCollector, TraceRing

    notes: list[str] = list(caches.notes)
    ring = TraceRing((caches.l1.size_bytes, caches.l1.ways))
    if recorder == "qemu":
        command, untraced = emulated(program, ring.path, notes)
        environment = without_preload()
    else:
        command, environment = _instrumented_command(program, ring.path)
        untraced = list(_UNTRACED_INSTRUMENTED)
    fields = [
        ("recorder", recorder),
        ("host", host),
        *caches.fields(),
        ("prefetch", "on" if prefetch else "off"),
        *(("program", word) for word in program),
        *(("not_traced", sentence) for sentence in (*_UNTRACED_ALWAYS, *untraced)),
    ]
    with NewTrace(output) as trace:
        shape = (*_below_l1(caches, other_llcs), caches.cores, prefetch, after)
        collector = TraceCollector(ring, trace.fd, *shape, fields, max_records)
        # The final name before the run: a killed recording leaves a readable partial trace.
        trace.keep()
        begin, used = time.monotonic(), _children_s()
        code, collected = _run(command, environment, collector, aside, alone, limit_s, stdin)
        cut = limit_s is not None and time.monotonic() - begin >= limit_s
    failure = "" if cut else failure_of(program[0], code, recorder)
    if not cut:
        notes += [failure] if failure else []
        notes += _afterwards(program[0], collected, recorder)
    notes += _losses(collected)
    return Recorded(code, collected, notes, failure, _children_s() - used, cut)


def _instrumented_command(
    program: Sequence[str], ring_path: str
) -> tuple[list[str], dict[str, str]]:
    """The command line of an instrumented program, and its environment."""
    file = str(program_file(program[0]))
    command = [file if "/" in file else f"./{file}", *program[1:]]
    return command, {**without_preload(), "NEARFAR_TRACE_RING": ring_path, **_preloaded()}


_Shape = tuple[int, int]


def _below_l1(
    caches: Caches, other_llcs: Sequence[Level]
) -> tuple[_Shape, _Shape | None, list[_Shape], list[_Shape]]:
    """Second and last cache as (bytes, ways), other last caches, and the TLB."""
    llc = (caches.llc.size_bytes, caches.llc.ways) if caches.llc else None
    others = [(level.size_bytes, level.ways) for level in other_llcs]
    return (caches.l2.size_bytes, caches.l2.ways), llc, others, list(caches.tlb)


def _children_s() -> float:
    """CPU time of all reaped children."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _run(
    command: list[str],
    environment: dict[str, str],
    collector: Any,
    aside: bool,
    alone: bool,
    limit_s: float | None,
    stdin: str,
) -> tuple[int, TraceCollected]:
    """Exit code, and the collector's counts; passes errors of the collector on."""
    outcome: dict[str, Any] = {}

    def collect() -> None:
        try:
            outcome["collected"] = collector.run()
        except Exception as error:
            outcome["error"] = error

    code: int | None = None
    thread = threading.Thread(target=collect)
    thread.start()
    try:
        _, code = run(command, environment, aside=aside, alone=alone, limit_s=limit_s, stdin=stdin)
    except StartError as error:
        raise BadInputError(
            f"cannot start {command[0]}: {error.why}", "check that it is executable (`ls -l`)"
        ) from None
    finally:
        collector.end(code)
        thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return code, outcome["collected"]


#: Fraction of floating-point instructions above which slow emulation is reported.
_MUCH_FLOATING_POINT = 0.05
_SIGNAL = 128
_ILLEGAL = _SIGNAL + signal.SIGILL


def ending_of(code: int) -> str:
    """Describe the end of a program from its exit code as a shell reports it."""
    try:
        return f"was ended by {signal.Signals(code - _SIGNAL).name}"
    except ValueError:
        return f"exited with {code}"


def failure_of(program: str, code: int, recorder: str) -> str:
    """The message for a failed program; empty for one that succeeded."""
    if code == _ILLEGAL and recorder == "qemu":
        return (
            f"{program} executed an instruction that the emulator does not know, "
            f"such as AVX-512; {HOW_TO_INSTRUMENT}"
        )
    return f"{program} {ending_of(code)}; the trace ends there" if code else ""


def _afterwards(program: str, collected: TraceCollected, recorder: str) -> list[str]:
    """Facts that a reader of a complete trace must know."""
    notes = []
    instructions = collected["totals"]["instructions"]
    floats = collected["float_instructions"]
    if instructions and floats / instructions > _MUCH_FLOATING_POINT:
        notes.append(
            f"{100 * floats / instructions:.0f} % of the instructions are "
            "floating point, which the emulator computes 24 to 63 times slower; to trace "
            f"it faster, {HOW_TO_INSTRUMENT}"
        )
    if not instructions and not collected["totals"]["loads"]:
        notes.append(
            f"nothing of {program} was recorded"
            + (f": {HOW_TO_INSTRUMENT}" if recorder != "qemu" else "")
        )
    if collected["executed"]:
        notes.append(
            f"{collected['executed']} programs that it started (exec) are not in the trace"
        )
    return notes


def _losses(collected: TraceCollected) -> list[str]:
    """Notes on threads that count as one, and on lost accesses; also of a run that was stopped."""
    notes = []
    if collected["lost_threads"]:
        notes.append(f"{collected['lost_threads']} threads beyond 4096 count as one")
    if collected["lost_entries"]:
        notes.append(f"{collected['lost_entries']} accesses of killed threads are not in the trace")
    return notes
