"""One measurement at a time on a machine, and nothing of ours beside it.

A file for the whole machine is locked: alone by who measures, shared by who computes. The lock is
inherited by the process that does the work, so it holds as long as that lives, even where whoever
started it was killed. Who waits to measure keeps new computations out (a second file is the
turnstile), so that it is not starved.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from nearfar.errors import MachineError

#: Where every user of a machine may leave a lock, the first that is there.
_FOLDERS = (Path("/run/lock"), Path("/tmp"))
#: How often who waits looks whether it is free, in seconds.
_LOOK_S = 0.02


class StoppedError(Exception):
    """Whoever waited was told to stop."""


@contextlib.contextmanager
def machine_lock(
    *,
    alone: bool,
    waits: Callable[[], None] = lambda: None,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[int]:
    """Yields a descriptor to be inherited. ``waits`` is called once if somebody else holds it.

    Raises MachineError where there is nowhere to lock, StoppedError where ``stopping`` says so.
    """
    turnstile, lock = _open("nearfar-turn.lock"), _open("nearfar-machine.lock")
    told = False
    try:
        for descriptor, kind in (
            (turnstile, fcntl.LOCK_EX),
            (lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH),
        ):
            while not _at_once(descriptor, kind):
                if stopping():
                    raise StoppedError
                if not told:
                    told = True
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
    """Read-only, which is enough to lock: a file of another user will do."""
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
