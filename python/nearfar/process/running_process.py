"""A process that another program started: whether it is there, and whether it is the same later."""

from __future__ import annotations

import contextlib
import os
import select
from dataclasses import dataclass
from pathlib import Path

from nearfar.errors import BadInputError

# include/linux/sched.h
_EXITING, _KERNEL_THREAD = 0x00000004, 0x00200000


@dataclass(frozen=True)
class ProcessIdentity:
    """A process for all time: its PID, when it started (clock ticks after boot), and the boot."""

    pid: int
    started: int
    boot: str


class RunningProcess:
    """A handle of a process that stays valid when its PID is used again. Close it, or use it in a
    ``with`` statement."""

    def __init__(self, pid: int) -> None:
        """Raises BadInputError for a PID without a program: absent, ended, a kernel thread."""
        try:
            self._handle = os.pidfd_open(pid)
        except (OSError, OverflowError):
            raise BadInputError(f"no process {pid}", "list processes with `ps -e`") from None
        try:
            flags, started = _status(pid)
            self.name = _text(pid, "comm").strip()
        except (OSError, ValueError, IndexError):
            os.close(self._handle)
            raise BadInputError(f"process {pid} has ended", "list processes with `ps -e`") from None
        why = ""
        if flags & _KERNEL_THREAD:
            why = f"process {pid} ({self.name}) is a thread of the kernel and has no memory"
        elif self.has_ended():
            why = f"process {pid} ({self.name}) has ended, and its parent has not asked for the end"
        if why:
            os.close(self._handle)
            raise BadInputError(why, "name a running program; list them with `ps -e`")
        self.pid = pid
        self.identity = ProcessIdentity(pid, started, boot_id())

    def __enter__(self) -> RunningProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the handle; call nothing else afterwards."""
        os.close(self._handle)

    def wait(self, seconds: float) -> bool:
        """Wait for a time, at most to the end of the process; return whether it has ended."""
        return bool(select.select([self._handle], [], [], max(seconds, 0.0))[0])

    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self.wait(0.0)

    def is_exiting(self) -> bool:
        """Whether it has ended, or gives its memory back because it ends."""
        try:
            return self.has_ended() or bool(_status(self.pid)[0] & _EXITING)
        except (OSError, ValueError, IndexError):
            return True

    def command(self) -> str:
        """Path of the executable. The kernel's name of the process (at most 15 characters) if the
        path is unreadable, or if its file name differs: it is a link's target or an interpreter."""
        with contextlib.suppress(OSError):
            path = os.readlink(f"/proc/{self.pid}/exe")  # noqa: PTH115 - the text, as it is
            if path.rpartition("/")[2].startswith(self.name):
                return path
        return self.name

    def children(self) -> int:
        """Number of processes that it has started and that still run."""
        count = 0
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{self.pid}/task").iterdir():
                with contextlib.suppress(OSError):
                    count += len((thread / "children").read_text().split())
        return count

    def resident_bytes(self) -> int:
        """Its memory that is present; 0 if it has ended."""
        return resident_bytes(self.pid)


def resident_bytes(pid: int) -> int:
    """Memory of a process that is present (proc(5), statm); 0 if it has ended."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(_text(pid, "statm").split()[1]) * os.sysconf("SC_PAGESIZE")
    return 0


def queued_s(pid: int) -> float:
    """Time for which the first thread of a process waited for a CPU (proc(5), schedstat); 0 if
    unknown."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(_text(pid, "schedstat").split()[1]) * 1e-9
    return 0.0


def boot_id() -> str:
    """A text that differs after each start of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _text(pid: int, file: str) -> str:
    return Path(f"/proc/{pid}/{file}").read_text(errors="replace")


def _status(pid: int) -> tuple[int, int]:
    """Flags and start of a process (proc(5), stat)."""
    fields = _text(pid, "stat").rpartition(")")[2].split()
    return int(fields[6]), int(fields[19])
