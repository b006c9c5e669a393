"""Standard streams that are closed, full, or whose reader has exited.

Every write of a verb to standard output or standard error ends in ``_Descriptor.write``, so that no
verb has to expect a failing stream:

- standard output cannot be written: MachineError, exit code 3, once;
- the reader of standard output has exited (EPIPE): ReaderGoneError, no message, exit code 141, as
  if SIGPIPE had ended the process;
- standard error cannot be written: the message is lost, the exit code is not.

If a standard stream was closed when the process started, /dev/null takes its descriptor: opened for
writing in place of standard input, for reading in place of the others. Reads and writes still fail
with EBADF, here and in child processes, and no file that is opened later gets the number.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from nearfar.errors import MachineError, ReaderGoneError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

STDIN, STDOUT, STDERR = 0, 1, 2


class _Descriptor(io.FileIO):
    """An output descriptor that fails once; later writes are dropped."""

    _failed = False

    def write(self, data: ReadableBuffer, /) -> int:
        size = memoryview(data).nbytes
        if self._failed:
            return size
        try:
            while (written := self._write_some(data)) is None:
                select.select([], [self.fileno()], [])
        except OSError as error:
            self._failed = True
            self._report(error)
            return size
        return written

    def _write_some(self, data: ReadableBuffer) -> int | None:
        """Return None if a non-blocking descriptor has no room (FileIO's type omits this case)."""
        return super().write(data)

    def _report(self, error: OSError) -> None:
        if self.fileno() != STDOUT:
            return
        if error.errno == errno.EPIPE:
            raise ReaderGoneError
        raise MachineError(
            f"cannot write standard output: {error.strerror}",
            "redirect it to a file on a file system with free space, or to /dev/null",
        )


@contextmanager
def guarded() -> Iterator[None]:
    """Replace ``sys.stdout`` and ``sys.stderr`` by streams with the rules of this module.

    A stream that does not belong to a descriptor of the process (a test's buffer) is not replaced.
    """
    _reserve_closed()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _guard(sys.stdout, STDOUT), _guard(sys.stderr, STDERR)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _reserve_closed() -> None:
    """Open /dev/null on each closed standard descriptor: for writing if it is standard input, else
    for reading, so that its use fails."""
    for number in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(number)
        except OSError:
            made = os.open(os.devnull, os.O_WRONLY if number == STDIN else os.O_RDONLY)
            if made != number:
                os.dup2(made, number)
                os.close(made)
            else:
                os.set_inheritable(number, True)


def _guard(stream: TextIO | None, number: int) -> TextIO:
    if stream is not None and not _is_descriptor(stream, number):
        return stream
    encoding = stream.encoding if stream is not None else "utf-8"
    raw = _Descriptor(number, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=number == STDERR or raw.isatty(),
    )


def _is_descriptor(stream: TextIO, number: int) -> bool:
    try:
        return stream.fileno() == number
    except (OSError, ValueError):
        return False
