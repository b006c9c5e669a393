"""The first Ctrl-C asks for what was found; the second ends the command."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from subprocess import Popen
from types import FrameType

#: Of a result that was asked for early.
INTERRUPTED = "interrupted: only the findings up to then are reported"
#: How long a program may take to end by Ctrl-C of the terminal, which it gets, too; and then by
#: the same signal from here, before it is killed.
_PATIENCE_S = (1.0, 3.0)


@contextmanager
def asking_once(ask: Callable[[int], None]) -> Iterator[list[int]]:
    """Calls ``ask`` with the first signal that interrupts; the second raises KeyboardInterrupt.

    Yields the signals that came.
    """
    asked: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not asked:
            asked.append(number)
            return ask(number)
        if callable(earlier := before[number]):
            earlier(number, frame)
        raise KeyboardInterrupt

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it
        numbers.append(signal.SIGHUP)
    before = {int(number): signal.signal(number, interrupt) for number in numbers}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass
class PatientWait:
    """Waits for a program; the first signal ends the program."""

    interrupted: bool = False

    def __call__(self, process: Popen[bytes]) -> None:
        """Returns when the program has ended."""

        def end(number: int) -> None:
            threading.Thread(target=_end, args=(process, number), daemon=True).start()

        with asking_once(end) as asked:
            process.wait()
        self.interrupted = bool(asked)


def _end(process: Popen[bytes], number: int) -> None:
    for patience_s, then in zip(_PATIENCE_S, (number, signal.SIGKILL), strict=True):
        time.sleep(patience_s)
        process.send_signal(then)  # no-op if it has ended
