"""The programs of the Seoul 2014 thesis: timed in fresh processes, allocators in turn; traced."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import MachineError
from nearfar.measure.allocators import GLIBC, Allocator
from nearfar.measure.session import Effort, Samples, Session
from nearfar.process.helpers import NATIVE_DIR, ask, usage_of
from nearfar.records.choices import ProgramName
from nearfar.records.programs import ProgramResult, ProgramRow
from nearfar.stats import median, ratio_of_pairs

if TYPE_CHECKING:
    from nearfar.stats import Estimate

#: L1 and L2 in the simulation of the thesis, which does not state their ways.
CACHES = {"l1": "131072/8", "l2": "2097152/16"}

#: A size with an allocator.
Case = tuple[int, str]
Point = tuple[int, str, str]


@dataclass
class Seen:
    """Other results of a repeat."""

    checksum: dict[Case, str] = field(default_factory=dict)
    bytes: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ProgramPlan:
    """All sizes with all allocators. Values: seconds."""

    program: ProgramName
    sizes: tuple[int, ...]
    steps: int
    allocators: tuple[Allocator, ...]
    cpu: int

    @property
    def grid(self) -> Sequence[Point]:
        """Sizes, by allocators, by clock."""
        return [
            (n, allocator.name, clock)
            for n in self.sizes
            for allocator in self.allocators
            for clock in ("wall", "cpu")
        ]

    def epoch(self, seed: int) -> Samples[Point]:
        """Run each size once with each allocator; runs of the same size follow each other."""
        seen = Seen()
        samples: Samples[Point] = Samples(extras=[seen])
        order = random.Random(seed)
        for n in order.sample(self.sizes, len(self.sizes)):
            for allocator in order.sample(self.allocators, len(self.allocators)):
                figures = run(self.program, n, self.steps, seed, allocator, self.cpu)
                usage = usage_of(figures)
                samples.add((n, allocator.name, "wall"), usage["wall_ns"] * 1e-9, [usage])
                samples.add((n, allocator.name, "cpu"), usage["cpu_ns"] * 1e-9, [])
                seen.checksum[n, allocator.name] = figures["checksum"]
                seen.bytes[n] = int(figures["array_bytes"])
        if any(len({seen.checksum[n, a.name] for a in self.allocators}) > 1 for n in self.sizes):
            raise MachineError(
                f"{self.program} computed a different result with another allocator",
                "memory is broken: run `nearfar doctor`",
            )
        return samples

    def smaller(self) -> ProgramPlan | None:
        """None: no point can be dropped."""
        return None


def command(program: ProgramName, n: int, steps: int, seed: int, *how: str) -> list[str]:
    """The command line of the program; ``how`` is an allocator, or ``record FILE CACHES…``."""
    return [str(NATIVE_DIR / "nearfar-program"), program, str(n), str(steps), str(seed), *how]


def run(
    program: ProgramName, n: int, steps: int, seed: int, allocator: Allocator, cpu: int
) -> dict[str, str]:
    """Run once in a fresh process. Raises the program's reported error, MachineError if it died."""
    line = ["taskset", "--cpu-list", str(cpu), *command(program, n, steps, seed, allocator.native)]
    return _figures(line, allocator.library)


def record(
    program: ProgramName, n: int, steps: int, seed: int, file: Path, caches: Sequence[str]
) -> None:
    """Write a trace of the arrays' accesses after ``caches`` (``BYTES/WAYS`` from the core).

    The file must not exist; an incomplete file is removed.
    """
    try:
        _figures(command(program, n, steps, seed, "record", str(file), *caches), "")
    except BaseException:
        with contextlib.suppress(OSError):
            file.unlink()
        raise


def _figures(line: list[str], library: str) -> dict[str, str]:
    answer = ask(line, library)
    if answer.refusal:
        raise answer.refusal.error()
    if answer.died:
        raise MachineError(
            f"the program died (exit code {answer.code}): {answer.complaint}",
            "use a smaller --problem-size",
        )
    return answer.figures


def measure(session: Session, plan: ProgramPlan, effort: Effort) -> ProgramResult:
    """Run the plan."""
    samples, _ = session.repeat("program", "s", plan, effort, label=_label)
    rows = [_row(session, plan, samples, n, a) for n in plan.sizes for a in plan.allocators]
    seen: Seen = samples.extras[0]
    top = next(row for row in rows if row.n == plan.sizes[-1])
    return ProgramResult(**dict(top), checksum=seen.checksum[top.n, top.allocator], rows=rows)


def _label(point: Point) -> str:
    n, allocator, clock = point
    return f"{n}, {allocator}, {clock} time"


def _row(
    session: Session, plan: ProgramPlan, samples: Samples[Point], n: int, allocator: Allocator
) -> ProgramRow:
    wall = samples.of((n, allocator.name, "wall"))
    estimates: dict[str, Estimate] = {
        "time_s": median(wall),
        "cpu_time_s": median(samples.of((n, allocator.name, "cpu"))),
    }
    if allocator.name != GLIBC and any(a.name == GLIBC for a in plan.allocators):
        estimates["ratio_to_malloc"] = ratio_of_pairs(wall, samples.of((n, GLIBC, "wall")))
    seen: Seen = samples.extras[0]
    return ProgramRow(
        **session.figures(allocator.origin_tier, persistent=False, **estimates),
        program=plan.program,
        n=n,
        steps=plan.steps,
        allocator=allocator.name,
        arrays_bytes=seen.bytes[n],
    )
