"""A machine-wide lock: one measurement at a time, and no nearfar computation concurrent with it.

Measurements lock a machine-wide file exclusively, computations share it. The lock is inherited by
the process that does the work, so it is held until that process ends, even if its parent was
killed. A waiting measurement blocks new computations (a second file is the turnstile), which
prevents starvation.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from nearfar.errors import MachineError

#: Candidate folders for the lock file, which all users can write; the first that exists.
_FOLDERS = (Path("/run/lock"), Path("/tmp"))
#: Polling interval of a waiting process, in seconds.
_LOOK_S = 0.02


class StoppedError(Exception):
    """The wait was canceled."""


@contextlib.contextmanager
def machine_lock(
    *,
    alone: bool,
    waits: Callable[[], None] = lambda: None,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[int]:
    """Yield an inheritable descriptor. ``waits`` is called once if another process holds the lock.

    Raises MachineError if no lock file can be created, StoppedError if ``stopping`` returns true.
    """
    turnstile, lock = _open("nearfar-turn.lock"), _open("nearfar-machine.lock")
    reported = False
    try:
        for descriptor, kind in (
            (turnstile, fcntl.LOCK_EX),
            (lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH),
        ):
            while not _at_once(descriptor, kind):
                if stopping():
                    raise StoppedError
                if not reported:
                    reported = True
                    waits()
                time.sleep(_LOOK_S)
        fcntl.flock(turnstile, fcntl.LOCK_UN)
        yield lock
    finally:
        os.close(turnstile)
        os.close(lock)


def _at_once(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open(name: str) -> int:
    """Open read-only, which suffices to lock: another user's file works too."""
    folder = next(folder for folder in _FOLDERS if folder.is_dir())
    path = folder / name
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with contextlib.suppress(FileExistsError):
            made = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
            os.fchmod(made, 0o644)  # whatever the umask says
            os.close(made)
        return os.open(path, flags)
    except OSError as error:
        raise MachineError(
            f"cannot lock {path}: {error.strerror}", f"remove it, or make {folder} writable"
        ) from None
