"""Run a program with the crash recorder preloaded."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nearfar.errors import BadInputError, MachineError, NearfarError
from nearfar.process.development import INCLUDE_DIR
from nearfar.process.elf import ignores_preload
from nearfar.process.helpers import preloadable, shipped
from nearfar.process.program_file import find_program
from nearfar.verify.reopening import recorded_pool, recording_process

RECORDER = "libnearfar-crash-recorder.so"
HEAP = "libnearfar-crash-heap.so"
#: Its file without a name, as the kernel names it.
HEAP_FILE = "memfd:nearfar-crash-heap"
#: The line that the heap leaves next to the log (native/crash/runtime/heap.cpp).
_HEAP_IS_FULL = "the heap is full"
#: The line that says that a fault is not the recorder's (native/crash/runtime/recording.cpp).
_OWN_FAULT = "a fault is its own"
#: Begins the line on a call that failed because it stores to the pool (the same file).
_REFUSED_CALL = "a system call was refused "
#: Begin lines on files that the program maps otherwise (native/crash/runtime/recording.cpp).
_MAPPED_UNSEEN, _MAPPED_EMPTY = "mapped unseen ", "mapped empty "
#: Begins a note on a process that maps a pool where there is a log already.
_AGAIN = "again "
#: How long children of a program that has ended may go on.
_CHILDREN_S = 2.0


@dataclass(frozen=True)
class Turn:
    """A created thread that goes first, and waits before one of its flushes (0: none).

    ``store`` is the last store that this flush writes back. See native/crash/runtime/turns.hpp.
    """

    thread: int
    flush: int = 0
    store: str = ""


class NothingRecordedError(NearfarError):
    """Nothing of the program can be judged; :func:`explaining_end` adds why."""

    def __init__(self, refused: NearfarError, unseen_bytes: int) -> None:
        super().__init__(refused.what, refused.next_step)
        self.unseen_bytes = unseen_bytes  # that were stored to the pool, at least
        self.exit_code = refused.exit_code


@contextmanager
def scratch_folder(place: str | Path | None = None) -> Iterator[Path]:
    """A temporary folder for a log and for images, in ``place`` or where such folders are."""
    with tempfile.TemporaryDirectory(prefix="nearfar-crash-", dir=place) as made:
        yield Path(made).resolve()


@contextmanager
def memory_of_judge() -> Iterator[Path]:
    """A file without a name, for the judge of native/crash/judge.hpp; it ends with this process."""
    descriptor = os.memfd_create("nearfar-judge")
    try:
        yield Path(f"/proc/{os.getpid()}/fd/{descriptor}")
    finally:
        os.close(descriptor)


def record(
    program: Sequence[str],
    log: Path,
    recorder: str,
    judge: Path | None = None,
    turn: Turn | None = None,
    heap_bytes: int = 0,
    pool: str | None = None,
    wait: Callable[[subprocess.Popen[bytes]], object] = subprocess.Popen.wait,
) -> int:
    """Run a program to its end and record its stores in ``log``; returns its exit code.

    ``judge``: memory of the judge; stores are then judged as they happen, not written to the log.
    ``turn``: which thread runs first, and where it waits. ``heap_bytes``: size of the pool that
    consists of aligned blocks; if 0, the pool is the file ``pool``, or the first file that the
    program maps. ``wait``: returns when the program has ended. PMEM_IS_PMEM_FORCE makes libpmem
    flush; otherwise it would call msync.
    """
    libraries = [preloadable(RECORDER), *([preloadable(HEAP)] if heap_bytes else [])]
    earlier = os.environ.get("LD_PRELOAD", "")
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join([*libraries, earlier]).strip(),
        "NEARFAR_CRASH_LOG": str(log),
        "NEARFAR_CRASH_RECORDER": recorder,
        "PMEM_IS_PMEM_FORCE": "1",
        **({"NEARFAR_CRASH_JUDGE": str(judge)} if judge else {}),
        **({"NEARFAR_CRASH_HEAP": str(heap_bytes)} if heap_bytes else {}),
        **({"NEARFAR_CRASH_POOL": str(Path(pool).absolute())} if pool else {}),
        **({"NEARFAR_CRASH_TURN": f"{turn.thread}:{turn.flush}"} if turn else {}),
    }
    ended, held = os.pipe()
    try:
        code = _ended(program, environment, held, wait)
    except OSError as error:
        raise BadInputError(
            f"cannot run {program[0]}: {error.strerror}", "check the program after --"
        ) from None
    finally:
        os.close(held)
        select.select([ended], [], [], _CHILDREN_S)  # its children hold the other end
        os.close(ended)
    if not log.exists():
        _refuse_unseen_mapping(program[0], _notes(log))
    if pool and not log.exists() and code:
        raise MachineError(
            f"{program[0]} {_ending(log, recorder, code)} before it mapped {pool}",
            f"run {shlex.join(program)} alone first: it must end with 0",
        )
    if pool and not log.exists():
        raise BadInputError(
            f"{program[0]} did not map {pool}", "give the file that it maps, or leave out --pool"
        )
    if (
        not log.exists()
        and (file := find_program(program[0]))
        and (reason := ignores_preload(file))
    ):
        raise BadInputError(
            f"{reason}: the recorder cannot be loaded into it", "link it with shared libraries"
        )
    return code


def _ended(
    program: Sequence[str],
    environment: Mapping[str, str],
    held: int,
    wait: Callable[[subprocess.Popen[bytes]], object],
) -> int:
    with subprocess.Popen(program, env=environment, stdout=2, pass_fds=[held]) as process:
        try:
            wait(process)
        except BaseException:
            process.kill()
            raise
    return process.returncode


def failure(program: Sequence[str], log: Path, recorder: str, code: int) -> list[str]:
    """How a program failed, in a sentence; nothing if it did not."""
    if not code:
        return []
    return [f"{program[0]} {_ending(log, recorder, code)}; what it did until then is judged"]


def unrecorded(program: Sequence[str], log: Path) -> list[str]:
    """What a program did that is not in its log, in sentences: which other processes stored to the
    pool, or can have, and which calls could not."""
    return [f"{way}: {missing}" for way, missing, _ in _ways_past_the_recorder(program, log)]


def _ways_past_the_recorder(program: Sequence[str], log: Path) -> list[tuple[str, str, str]]:
    """How the pool was stored to, or can have been, without a record; what is not judged
    therefore; and the next step."""
    notes = _notes(log)
    theirs = "its stores are not judged"
    found = []
    if "" in notes:
        step = "store to the pool in the process that maps it, not in a child of fork()"
        found.append((f"a process that {program[0]} forked stored to the pool", theirs, step))
    if str(recorded_pool(log)) in notes:
        step = "have the process that maps the pool first store to it"
        way = "a second process maps the pool for writing"
        if f"{_AGAIN}{recording_process(log)}" in notes:
            way = f"{program[0]} executes a program that maps the pool for writing"
        found.append((way, theirs, step))
    if _HEAP_IS_FULL in notes:
        step = "give a larger size"
        found.append(("blocks that do not fit in --heap are not judged", step, step))
    if any(line.startswith((_MAPPED_UNSEEN, _MAPPED_EMPTY)) for line in notes):
        way = "the program also maps the pool in a way that the recorder does not see"
        step = "map the pool by mmap() of the C library only, with its size"
        found.append((way, "what it stores there is not judged", step))
    for line in sorted(notes):
        if line.startswith(_REFUSED_CALL):
            way = "the recorder makes the pages of the pool read-only"
            missing = f"{line.removeprefix(_REFUSED_CALL)} failed with EFAULT"
            found.append((way, missing, "use --recorder instrumented"))
    return found


def _ending(log: Path, recorder: str, code: int) -> str:
    """How a program ended that failed."""
    if code >= 0:
        return f"ended with {code}"
    how = f"was ended by {signal.Signals(-code).name}"
    pool = recorded_pool(log)
    if _is_lost_fault(log, recorder, code):
        return (
            f"{how}: a stack of it lies in the pool or is full, so that no store can be recorded;"
            " try --recorder instrumented"
        )
    if -code == signal.SIGXFSZ:
        return f"{how}: its limit of file sizes (ulimit -f) holds for the log of the recorder, too"
    if -code != signal.SIGBUS or pool is None:
        return how
    if _is_full(pool):
        return f"{how}: the file system of {pool} is full"
    return f"{how}: it used a page beyond the end of a file, or the file system was full"


def _is_lost_fault(log: Path, recorder: str, code: int) -> bool:
    """Whether a store faulted and the kernel had no stack for the signal: the default recorder
    notes the faults of the program's own."""
    if code != -signal.SIGSEGV or recorder != "preload" or not log.exists():
        return False
    return _OWN_FAULT not in _notes(log)


def _is_full(file: Path) -> bool:
    try:
        system = os.statvfs(file)
    except OSError:
        return False
    return min(system.f_bfree, system.f_bavail) == 0


@contextmanager
def explaining_end(program: Sequence[str], log: Path, recorder: str, code: int) -> Iterator[None]:
    """Adds to a refusal how the program ended, if that is a reason why little was recorded."""
    try:
        yield
    except NothingRecordedError as error:
        ways = _ways_past_the_recorder(program, log)
        reasons = [(way, step) for way, _, step in ways]
        if code:
            step = f"run {shlex.join(program)} alone first: it must end with 0"
            reasons.insert(0, (f"{program[0]} {_ending(log, recorder, code)}", step))
        if error.unseen_bytes and not reasons and recorder == "instrumented":
            why = "with this recorder, libraries and assembly store unseen"
            reasons.append((why, "record it with --recorder preload"))
        if not reasons:
            raise
        why = "; ".join(reason for reason, _ in reasons)
        raise MachineError(f"{error.what} ({why})", reasons[0][1]) from None
    except NearfarError as error:
        if code >= 0:  # no signal
            raise
        how = f"{program[0]} {_ending(log, recorder, code)}"
        raise type(error)(f"{error.what} ({how})", error.next_step) from None


def _notes(log: Path) -> set[str]:
    """The lines that processes have left next to a log (native/crash/runtime/unrecorded.hpp)."""
    note = Path(f"{log}.unrecorded")
    if not note.exists():
        return set()
    return set(note.read_text(errors="surrogateescape").splitlines())


def _refuse_unseen_mapping(program: str, notes: set[str]) -> None:
    """Of a program whose pool is not known. Raises MachineError."""
    for line in sorted(notes):
        if line.startswith(_MAPPED_UNSEEN):
            file = line.removeprefix(_MAPPED_UNSEEN)
            raise MachineError(
                f"{program} maps {file} by a system call that the recorder does not see",
                "have it call mmap() of the C library, with PROT_WRITE and MAP_SHARED",
            )
        if line.startswith(_MAPPED_EMPTY):
            file = line.removeprefix(_MAPPED_EMPTY)
            raise MachineError(
                f"{program} maps {file} while it is empty: the recorder does not see its stores",
                "give the file its size before it is mapped",
            )


def compile_flags() -> str:
    """Flags of GCC, and of clang, for a program whose stores are recorded.

    - ``-fsanitize=thread -Wno-tsan``: instruments stores.
    - ``--param=tsan-instrument-func-entry-exit=0``: without entries and exits of functions.
    - ``-fno-builtin``: calls the copy functions of the C library, which are recorded.
    - ``-mprefer-vector-width=128``: clang has no callback for vectors of more than 16 bytes.
    - ``-fno-optimize-sibling-calls``: keeps all calls on the stack.
    - ``-isystem``: headers that report flushes by intrinsics.
    """
    instrument = (
        "-g -fsanitize=thread -Wno-tsan -fno-builtin -fno-optimize-sibling-calls"
        " --param=tsan-instrument-func-entry-exit=0 -mprefer-vector-width=128"
    )
    headers = (INCLUDE_DIR / "nearfar" / "crash", INCLUDE_DIR)
    return f"{instrument} {shlex.join(f'-isystem{folder}' for folder in headers)}"


def link_flags() -> str:
    """Flags that link the recorder instead of the sanitizer's library. Raises MachineError."""
    library = shipped(RECORDER)
    return shlex.join([str(library), f"-Wl,-rpath,{library.parent}"])
