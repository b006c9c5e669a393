"""The program ``changing_memory``, which changes its memory and answers requests on pipes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hmalloc_build import compile_c
from nearfar.place.promise import PlanPromise, Promise, RulePromise

MIB = 1 << 20

#: A plan that places all of it in the tier ``far``.
PLAN = """\
hmalloc-plan 1
tier far numa:{node}
rule far map=anonymous size=16MiB..
rule far map=name:table
rule far map=file:shared.data
rule far map=heap
rule far globals=name:
"""


#: Of the rules of PLAN for large anonymous mappings and for the heap.
PROMISE = "".join(
    f"{line}\n"
    for line in Promise(
        whole=PlanPromise(
            allocated_bytes=0, peak_bytes=0, near_bytes=0, slowdown=1.0, slowdown_all_far=1.0
        ),
        rules=[
            RulePromise(
                rule=number,
                tier="far",
                allocations=1,
                allocated_bytes=50 * MIB,
                peak_bytes=50 * MIB,
                reads=0,
                writes=0,
                stall_share=0.5,
            )
            for number in (1, 4)
        ],
    ).lines()
)


def build(folder: Path, *flags: str) -> Path:
    """The program, compiled."""
    return compile_c(folder, "changing_memory", flags=flags)


class ChangingMemory:
    """A running one. ``ask`` sends a request and returns the answer."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.process = process
        self.pid = process.pid
        self._folder = folder

    def send(self, request: str) -> None:
        """Send a request that has no answer."""
        (self._folder / "in").write_text(request + "\n")

    def ask(self, request: str) -> str:
        """Send a request and wait for its answer."""
        self.send(request)
        with (self._folder / "out").open() as answers:
            return answers.readline().strip()


@contextmanager
def running(program: Path, folder: Path) -> Iterator[ChangingMemory]:
    """Start the program; it is killed at the end. It has set its memory up when it answers."""
    folder.mkdir()
    for pipe in ("in", "out"):
        os.mkfifo(folder / pipe)
    with subprocess.Popen([program, folder]) as process:
        try:
            found = ChangingMemory(process, folder)
            found.ask("rounds")
            yield found
        finally:
            process.kill()
