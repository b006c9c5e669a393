"""One cell: the verb itself, in a process of its own, as it would be typed."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from nearfar import store
from nearfar.errors import ExitCode
from nearfar.sweep.machine_lock import machine_lock
from nearfar.sweep.order import Order

#: The result of a verb that keeps no record.
ANSWER = "answer.json"
#: Begins the name of the folder of a cell that is being run.
UNDER_WAY = "under-way-"
#: How long a verb that was told to stop may take to keep what it has.
_GRACE_S = 10.0
#: Exit codes that come with a result.
_WITH_RESULT = (ExitCode.OK, ExitCode.VIOLATION)


@dataclass(frozen=True)
class Outcome:
    """What a cell left: picklable, files with their contents."""

    order: Order
    exit_code: int
    message: str
    started: str
    took_s: float
    host: str
    files: dict[str, bytes]

    @property
    def finished(self) -> bool:
        """Whether there is a result."""
        return self.exit_code in _WITH_RESULT


@dataclass
class Processes:
    """Verbs at work, so that they can be told to stop. Used by several threads."""

    stopping: bool = False
    _running: set[subprocess.Popen[str]] = field(default_factory=set)

    def wait(self, process: subprocess.Popen[str]) -> str:
        """Wait for a process; returns what it wrote on stderr."""
        self._running.add(process)
        if self.stopping:
            self._end(process)
        _, complaint = process.communicate()
        self._running.discard(process)
        return complaint

    def stop(self) -> None:
        """Tell all to stop, and see that they do."""
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
    order: Order,
    processes: Processes | None = None,
    waits: Callable[[], None] = lambda: None,
    scratch: Path | None = None,
) -> Outcome:
    """Run one cell and gather its files; ``scratch``: where they lie until then.

    Stands for itself on a worker of a cluster: it needs nearfar there and no file of ours. Raises
    MachineError where nothing can be locked.
    """
    working = processes or Processes()
    with tempfile.TemporaryDirectory(prefix=UNDER_WAY, dir=scratch) as folder:
        record, answer = Path(folder) / "record", Path(folder) / ANSWER
        command = [sys.executable, "-m", "nearfar.cli.main", *order.verb.split(),
                   "--json", str(answer)]  # fmt: skip
        command += ["--out", str(record)] if order.records else []
        with machine_lock(
            alone=order.measures, waits=waits, stopping=lambda: working.stopping
        ) as lock:
            started, begin = store.now(), time.monotonic()
            code, complaint = _run([*command, *order.arguments], lock, working)
            took_s = time.monotonic() - begin
        kept = [*record.glob("*.json*")] if record.is_dir() else [answer]
        files = {file.name: file.read_bytes() for file in kept if file.is_file()}
    return Outcome(order, code, _message(code, complaint), started, took_s, platform.node(), files)


def _run(command: list[str], lock: int, processes: Processes) -> tuple[int, str]:
    # In a session of its own: Ctrl-C is for who sweeps, which passes it on.
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, errors="replace", pass_fds=(lock,), start_new_session=True,
        env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    complaint = processes.wait(process)
    return process.returncode, complaint


def _message(code: int, complaint: str) -> str:
    """What a failed verb said of it, in one line."""
    if code in _WITH_RESULT:
        return ""
    if code < 0:
        return f"killed by signal {-code}"
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith("next:")]
    return (told or ["it said nothing"])[-1].removeprefix("nearfar: ")
