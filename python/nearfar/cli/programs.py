"""What ``bench sort``, ``bench lbm`` and ``bench matmul`` have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import options
from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar.records.programs import ProgramName

AllocatorNames = Annotated[
    list[str] | None,
    typer.Option(
        "--allocator",
        metavar="NAME",
        help="Where arrays come from: malloc, hmalloc:near, hmalloc:TIER, …; repeat for several.",
    ),
]
Sizes = Annotated[
    list[int] | None, typer.Option("-n", metavar="N", min=1, help="Size; repeat for several.")
]
TraceFile = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE", help="Write a trace of the arrays, untimed."),
]
After = Annotated[
    str,
    typer.Option("--after", metavar="l1|l2", help="With --trace: the thesis' caches above."),
]


@dataclass(frozen=True)
class Work:
    """One program and how it is run."""

    program: ProgramName
    sizes: list[int]
    steps: int
    allocators: list[str]
    trace: Path | None
    after: str


@dataclass(frozen=True)
class Choice:
    """The flags that these programs share beside those of measuring."""

    sizes: Sizes = None
    allocator: AllocatorNames = None
    trace: TraceFile = None
    after: After = "l1"

    def of(self, program: ProgramName, size: int, steps: int = 1) -> Work:
        """What is asked of a program whose usual size is ``size``."""
        return Work(
            program, self.sizes or [size], steps, self.allocator or ["malloc"], self.trace,
            self.after,
        )  # fmt: skip


def run(verb: str, work: Work, shared: options.Measuring) -> None:
    """Time the program, or write its trace."""
    if work.trace:
        _record(work, work.trace, shared)
        return
    from nearfar.cli.plans import chosen_cpus
    from nearfar.cli.recording import recorded
    from nearfar.measure import allocators, programs
    from nearfar.measure.session import Effort
    from nearfar.report import text

    budget_s = shared.budget_s(30.0)
    names = ["glibc" if name == "malloc" else name for name in work.allocators]
    arguments = {
        "program": work.program, "n": work.sizes, "steps": work.steps, "allocators": names,
        "time_s": budget_s,
    }  # fmt: skip
    with recorded(verb, arguments, shared.kept) as recording:
        cpu = chosen_cpus(recording.machine, shared.cpus)[0]
        found = tuple(allocators.resolve(name) for name in dict.fromkeys(names))
        sizes = tuple(sorted(set(work.sizes)))
        plan = programs.ProgramPlan(work.program, sizes, work.steps, found, cpu)
        effort = Effort(budget_s, shared.runs, shared.warmup, apart=False)
        result = programs.measure(recording.session, plan, effort)
        recording.keep("program", result, [])
    recording.show(text.program(result), recording.document(result), shared.json)


def _record(work: Work, file: Path, shared: options.Measuring) -> None:
    from nearfar.cli.console import note
    from nearfar.measure import programs

    levels = list(programs.CACHES)
    if work.after not in levels:
        raise BadInputError(f"--after {work.after} is no level", f"write {' or '.join(levels)}")
    if len(work.sizes) != 1:
        raise BadInputError("a trace is of one size", "give -n once")
    if file.exists():
        raise BadInputError(f"{file} is there already", "name a new file, or remove it")
    caches = [programs.CACHES[level] for level in levels[: levels.index(work.after) + 1]]
    programs.record(work.program, work.sizes[0], work.steps, shared.seed, file, caches)
    if not shared.quiet:
        note(f"trace: {file}; next: nearfar sim {file}")
