"""Flags and steps that ``bench sort``, ``bench lbm`` and ``bench matmul`` share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags, ranges
from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar.records.choices import ProgramName

AllocatorNames = Annotated[
    list[str] | None,
    typer.Option(
        "--allocator",
        metavar="NAME",
        help="Allocator of the arrays: malloc, hmalloc:near, hmalloc:TIER, …; repeat for several.",
    ),
]
Sizes = Annotated[
    list[int] | None,
    typer.Option("-n", metavar="N", min=1, max=ranges.MOST_COUNT, help="Size; repeat for several."),
]
TraceFile = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE", help="Write a trace of the arrays, untimed."),
]
After = Annotated[
    str | None,
    typer.Option("--after", metavar="l1|l2", help="With --trace: last modeled cache level (l1)."),
]
#: Measuring flags that also apply to a trace.
_OF_TRACES = ("seed", "quiet")


@dataclass(frozen=True)
class Work:
    """One program and its run parameters."""

    program: ProgramName
    sizes: list[int]
    steps: int
    allocators: list[str]
    trace: Path | None
    after: str | None


@dataclass(frozen=True)
class Choice:
    """The flags that these programs share in addition to those of measuring."""

    sizes: Sizes = None
    allocator: AllocatorNames = None
    trace: TraceFile = None
    after: After = None

    def of(self, program: ProgramName, size: int, steps: int = 1) -> Work:
        """Return the work that the flags select; ``size`` is the program's default size."""
        return Work(
            program,
            self.sizes or [size],
            steps,
            self.allocator or ["malloc"],
            self.trace,
            self.after,
        )


def run(verb: str, work: Work, shared: flags.Measuring) -> None:
    """Time the program, or write its trace."""
    if work.trace:
        _record(work, work.trace, shared)
        return
    if work.after is not None:
        raise BadInputError("--after requires --trace", "give --trace FILE, or leave --after out")
    from nearfar.measure import allocators, programs
    from nearfar.measure.session import Effort
    from nearfar.report import terminal
    from nearfar.workflows.plans import chosen_cpus
    from nearfar.workflows.recording import recorded

    budget_s = shared.budget_s(30.0)
    names = ["glibc" if name == "malloc" else name for name in work.allocators]
    arguments = {
        "program": work.program,
        "n": work.sizes,
        "steps": work.steps,
        "allocators": names,
        "time_s": budget_s,
    }
    with recorded(verb, arguments, shared.kept) as recording:
        cpu = chosen_cpus(recording.machine, shared.cpus)[0]
        found = tuple(allocators.resolve(name) for name in dict.fromkeys(names))
        sizes = tuple(sorted(set(work.sizes)))
        plan = programs.ProgramPlan(work.program, sizes, work.steps, found, cpu)
        effort = Effort(budget_s, shared.runs, shared.warmup, apart=False)
        result = programs.measure(recording.session, plan, effort)
        recording.keep("program", result, [])
    recording.show(terminal.program(result), recording.document(result), shared.json)


def _record(work: Work, file: Path, shared: flags.Measuring) -> None:
    from nearfar.measure import programs
    from nearfar.report.console import note

    _refuse_timing(work, shared)
    levels = list(programs.CACHES)
    after = levels[0] if work.after is None else work.after
    if after not in levels:
        raise BadInputError(f"invalid --after {after}", f"write {' or '.join(levels)}")
    if len(work.sizes) != 1:
        raise BadInputError("a trace has exactly one size", "give -n once")
    if file.exists():
        raise BadInputError(f"{file} already exists", "name a new file, or remove it")
    caches = [programs.CACHES[level] for level in levels[: levels.index(after) + 1]]
    programs.record(work.program, work.sizes[0], work.steps, shared.seed, file, caches)
    if not shared.quiet:
        note(f"trace: {file}; next: nearfar sim {file}")


def _refuse_timing(work: Work, shared: flags.Measuring) -> None:
    """Raise BadInputError for a timing flag, which has no effect on a trace."""
    timing = [
        field.name
        for field in fields(shared)
        if field.name not in _OF_TRACES and getattr(shared, field.name) != field.default
    ]
    if work.allocators != ["malloc"]:
        timing.insert(0, "allocator")
    if timing:
        raise BadInputError(
            f"--{timing[0]} has no effect with --trace, which times nothing",
            f"leave out --{timing[0]}, or --trace {work.trace}",
        )
