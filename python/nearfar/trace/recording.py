"""Runs a program under a recorder, and collects what it did into a trace.

The recorder writes into a ring in shared memory, which has no name and is gone with us; a thread of
ours, which holds no lock of Python's meanwhile, takes it out, filters it and writes the file.
"""

from __future__ import annotations

import os
import shlex
import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearfar.errors import BadInputError, MachineError
from nearfar.files import partial_of
from nearfar.measure.beside import shipped, without_preload
from nearfar.place.program import find, ignores_preload
from nearfar.place.running import StartError, run

if TYPE_CHECKING:
    from nearfar._native import TraceCollected
    from nearfar.trace.caches import Caches

EMULATOR = "qemu-x86_64"
_PLUGIN = "libnearfar-trace-qemu.so"
_ALLOCATIONS = "libnearfar-trace-allocations.so"
_MAGIC = b"NFTRACE\n"

#: Why a program may be traced by instrumentation, and how.
INSTRUMENTED = (
    "compile it with the flags that `nearfar trace flags` prints, and trace it with "
    "--recorder instrumented"
)
#: Sentences for the header.
_NEVER_TRACED = (
    "what the kernel does for it",
    "fetches of instructions",
    "programs that it starts (exec): forked children are traced until they do",
)
_INSTRUMENTED = (
    "code that was not compiled with instrumentation, libraries above all",
    "how many instructions there were: accesses are counted in their place",
    "what clwb and clflush write back, and which stores go past the caches",
)
_EMULATED = ("which lines clwb and clflush write back: the emulator tells no addresses of them",)


@dataclass
class Recorded:
    """How a recording went."""

    code: int
    collected: TraceCollected
    notes: list[str]


class NewTrace:
    """A trace under way beside its own name: an old one goes when the new one is kept.

    Where it was not kept, leaving the context leaves no trace of it.
    """

    def __init__(self, path: Path) -> None:
        """Open it; nothing but a trace will be overwritten. Raises BadInputError, MachineError."""
        try:
            self._target, self._partial = partial_of(path)
            if path.is_file() and path.stat().st_size > 0:
                with path.open("rb") as old:
                    if old.read(len(_MAGIC)) != _MAGIC:
                        raise BadInputError(
                            f"{path} is there and is no trace", "name another after -o"
                        )
            self.fd = os.open(
                self._partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644
            )
        except OSError as error:
            raise _cannot_write(path, error) from None

    def keep(self) -> None:
        """Give it its name; it may be written on. Raises MachineError, and is not kept then."""
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


def program_file(program: str) -> Path:
    """What would be started. Raises BadInputError where there is nothing."""
    found = find(program)
    if found is None:
        raise BadInputError(f"there is no program {program}", "name one after --, as in a shell")
    return found


def is_elf(file: Path) -> bool:
    """Whether a file begins as programs do."""
    with file.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"


def _without_scripts(program: list[str]) -> list[str]:
    """A command line as the kernel would start it: scripts by their interpreters."""
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
            words = words[1:]  # which would start the interpreter as another program
        program = [*words, *program]
    return program


def emulated(program: Sequence[str], ring: str, notes: list[str]) -> tuple[list[str], list[str]]:
    """The command line that runs a program under the emulator; what else is not traced.

    Raises MachineError where the emulator is missing, BadInputError for what it cannot run.
    """
    if shutil.which(EMULATOR) is None:
        raise MachineError(
            f"{EMULATOR} is not installed", f"apt-get install qemu-user; or {INSTRUMENTED}"
        )
    command = _without_scripts(list(program))
    file = Path(command[0])
    why = ignores_preload(file)
    if "64-bit" in why or not is_elf(file):
        raise BadInputError(why or f"{file} is no program", "trace a program for 64-bit x86")
    untraced = list(_EMULATED)
    emulator = [EMULATOR, "-cpu", "max", "-plugin", f"{shipped(_PLUGIN)},ring={ring}"]
    if why:
        untraced.append(f"allocation sites: {why}")
        notes.append(f"nearfar: {why}: objects are told by mapping, not by allocation")
    else:
        for name, value in _preloaded().items():
            emulator += ["-E", f"{name}={value}"]
    return [*emulator, *command], untraced


def _preloaded() -> dict[str, str]:
    """Variables that load the library which tells of allocations, before those of others."""
    others = os.environ.get("LD_PRELOAD", "")
    return {
        "LD_PRELOAD": f"{shipped(_ALLOCATIONS)} {others}".rstrip(),
        "NEARFAR_TRACE_PRELOAD": others,
    }


def instrumentation_flags() -> str:
    """What GCC wants, compiling and linking. Raises MachineError where the library is missing."""
    folder = shipped(_PLUGIN).parent / "instrumented"
    return shlex.join([
        "-fsanitize=thread", "--param=tsan-instrument-func-entry-exit=0",
        "-fno-omit-frame-pointer", f"-L{folder}", f"-Wl,-rpath,{folder}",
    ])  # fmt: skip


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
    most_records: int = 0,
) -> Recorded:
    """Run a program to its end and write its trace; errors of writing come as NativeError.
    ``aside`` and ``alone`` are those of ``place.running.run``. Beyond ``most_records`` it is traced
    in windows, at even distances (0: all of it).

    Raises BadInputError and MachineError before anything is started.
    """
    from nearfar._native import TraceCollector, TraceRing

    notes: list[str] = list(caches.notes)
    ring = TraceRing((caches.l1.size_bytes, caches.l1.ways))
    if recorder == "qemu":
        command, untraced = emulated(program, ring.path, notes)
        environment = without_preload()
    else:
        file = str(program_file(program[0]))
        command = [file if "/" in file else f"./{file}", *program[1:]]
        untraced = list(_INSTRUMENTED)
        environment = {**without_preload(), "NEARFAR_TRACE_RING": ring.path, **_preloaded()}
    fields = [
        ("recorder", recorder), ("host", host), *caches.fields(),
        ("prefetch", "on" if prefetch else "off"),
        *(("program", word) for word in program),
        *(("not_traced", sentence) for sentence in (*_NEVER_TRACED, *untraced)),
    ]  # fmt: skip
    with NewTrace(output) as trace:
        collector = TraceCollector(
            ring, trace.fd, (caches.l2.size_bytes, caches.l2.ways),
            (caches.llc.size_bytes, caches.llc.ways) if caches.llc else None,
            list(caches.tlb), caches.cores, prefetch, after, fields, most_records,
        )  # fmt: skip
        trace.keep()
        code, collected = _run(command, environment, collector, aside, alone)
    notes += _afterwards(program[0], code, collected, recorder)
    return Recorded(code, collected, notes)


def _run(
    command: list[str],
    environment: dict[str, str],
    collector: Any,
    aside: bool,
    alone: bool,
) -> tuple[int, TraceCollected]:
    """Exit code, and what was collected; raises what the collector met."""
    outcome: dict[str, Any] = {}

    def collect() -> None:
        try:
            outcome["collected"] = collector.run()
        except Exception as error:
            outcome["error"] = error

    thread = threading.Thread(target=collect)
    thread.start()
    try:
        _, code = run(command, environment, aside=aside, alone=alone)
    except StartError as error:
        raise BadInputError(f"cannot start {command[0]}: {error.why}", "check its mode") from None
    finally:
        collector.end()
        thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return code, outcome["collected"]


#: Share of floating-point instructions beyond which emulation is slow enough to say so.
_MUCH_FLOATING_POINT = 0.05
_ILLEGAL, _INTERRUPTED = 128 + 4, 128 + 2


def _afterwards(program: str, code: int, collected: TraceCollected, recorder: str) -> list[str]:
    notes = []
    if code == _ILLEGAL and recorder == "qemu":
        notes.append(f"nearfar: {program} executed an instruction that the emulator does not know, "
                     f"such as AVX-512; {INSTRUMENTED}")  # fmt: skip
    elif code and code != _INTERRUPTED:
        notes.append(f"nearfar: {program} ended with {code}; the trace goes up to there")
    instructions = collected["totals"]["instructions"]
    floats = collected["float_instructions"]
    if instructions and floats / instructions > _MUCH_FLOATING_POINT:
        notes.append(f"nearfar: {100 * floats / instructions:.0f} % of the instructions are "
                     "floating point, which the emulator computes 24 to 63 times slower; to trace "
                     f"it faster, {INSTRUMENTED}")  # fmt: skip
    if not instructions and not collected["totals"]["loads"]:
        notes.append(f"nearfar: nothing of {program} was recorded"
                     + (f": {INSTRUMENTED}" if recorder != "qemu" else ""))  # fmt: skip
    if collected["executed"]:
        notes.append(f"nearfar: {collected['executed']} programs that it started (exec) are not in "
                     "the trace")  # fmt: skip
    if collected["lost_threads"]:
        notes.append(f"nearfar: {collected['lost_threads']} threads beyond 4096 count as one")
    return notes
