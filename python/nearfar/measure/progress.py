"""Progress reports of long work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Progress(Protocol):
    """Receiver of progress reports of long work."""

    def step(self, what: str, done: float) -> None:
        """Report the current step, and the completed fraction (0 to 1)."""

    def note(self, text: str) -> None:
        """Report one line that stays."""


#: Opens a receiver for one piece of work.
ProgressSource = Callable[[], AbstractContextManager[Progress]]


class _Silent:
    def step(self, what: str, done: float) -> None:
        pass

    def note(self, text: str) -> None:
        pass


@contextmanager
def silent() -> Iterator[Progress]:
    """A receiver that ignores all reports."""
    yield _Silent()
