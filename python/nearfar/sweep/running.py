"""Run one cell: the verb in a process of its own."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from nearfar import store
from nearfar.errors import ExitCode
from nearfar.sweep.machine_lock import machine_lock
from nearfar.sweep.scratch import scratch_folder
from nearfar.sweep.work_order import WorkOrder

#: The output of ``--csv``, in the folder of the cell.
TABLE = "table.csv"
#: Seconds that a verb has to save its results, between SIGTERM and SIGKILL.
_GRACE_S = 10.0
#: Exit codes with a result.
_WITH_RESULT = (ExitCode.OK, ExitCode.VIOLATION)


@dataclass(frozen=True)
class Outcome:
    """The result of a cell: picklable, with the contents of all files by path within the cell.

    ``folder``: the temporary directory of the files during the run. Files may contain this path.
    """

    order: WorkOrder
    exit_code: int
    message: str
    started: str
    took_s: float
    host: str
    files: dict[str, bytes]
    folder: str = ""

    @property
    def finished(self) -> bool:
        """Whether there is a result."""
        return self.exit_code in _WITH_RESULT


@dataclass
class Processes:
    """Running verbs, so that they can be stopped. Thread-safe."""

    stopping: bool = False
    _running: set[subprocess.Popen[str]] = field(default_factory=set)

    def wait(self, process: subprocess.Popen[str]) -> str:
        """Wait for a process; returns its standard error."""
        self._running.add(process)
        if self.stopping:
            self._end(process)
        _, complaint = process.communicate()
        self._running.discard(process)
        return complaint

    def stop(self) -> None:
        """Stop all verbs and wait for their end."""
        self.stopping = True
        for process in list(self._running):
            self._end(process)

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def run_order(
    order: WorkOrder,
    processes: Processes | None = None,
    waits: Callable[[], None] = lambda: None,
    scratch: Path | None = None,
) -> Outcome:
    """Run one cell and gather its files; ``scratch``: their parent directory during the run.

    ``waits`` is called if the cell must wait because another process measures. Self-contained on a
    worker of a cluster: it requires nearfar there, but no local file. Raises MachineError if no
    lock file can be created.
    """
    working = processes or Processes()
    with scratch_folder(scratch) as (folder, held):
        record = folder / order.id  # the verb names its outputs after it
        with machine_lock(
            alone=order.measures, waits=waits, stopping=lambda: working.stopping
        ) as lock:
            started, begin = store.now(), time.monotonic()
            code, complaint = _run(_command(order, record), (lock, held), working)
            took_s = time.monotonic() - begin
        files = _written(record)
    return Outcome(
        order, code, _message(code, complaint), started, took_s, platform.node(), files, str(record)
    )


def _command(order: WorkOrder, record: Path) -> list[str]:
    command = [
        sys.executable,
        "-m",
        "nearfar.sweep.cell_process",
        str(os.getpid()),
        *order.verb.split(),
        "--json",
        str(record.with_name(store.ANSWER)),
    ]
    command += ["--out", str(record)] if order.records else []
    # The argument after --csv is a place holder for the file of the table in this folder.
    before = ("", *order.arguments)
    return command + [
        str(record.with_name(TABLE)) if flag == "--csv" else argument
        for flag, argument in zip(before, order.arguments, strict=False)
    ]


def _written(record: Path) -> dict[str, bytes]:
    """Every file that a verb wrote: those of its record, or else its answer, and its table."""
    files = {
        str(file.relative_to(record)): file.read_bytes()
        for file in sorted(record.rglob("*"))
        if file.is_file()
    }
    for name in (TABLE,) if files else (TABLE, store.ANSWER):
        file = record.with_name(name)
        if file.is_file():
            files[name] = file.read_bytes()
    return files


def _run(command: list[str], locks: tuple[int, int], processes: Processes) -> tuple[int, str]:
    # In a session of its own: Ctrl-C goes to the sweep, which forwards it.
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        pass_fds=locks,
        start_new_session=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    complaint = processes.wait(process)
    return process.returncode, complaint


def _message(code: int, complaint: str) -> str:
    """The last message of a failed verb, in one line."""
    if code in _WITH_RESULT:
        return ""
    if code < 0:
        return f"killed by signal {-code}"
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    messages = [line for line in lines if not line.startswith("next:")]
    return (messages or ["it said nothing"])[-1].removeprefix("nearfar: ")
