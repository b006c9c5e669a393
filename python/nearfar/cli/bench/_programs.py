"""Flags and steps that ``bench sort``, ``bench lbm`` and ``bench matmul`` share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from nearfar.cli import flags
from nearfar.cli.output import show_measured
from nearfar.errors import BadInputError
from nearfar.records.choices import ProgramName

AllocatorNames = Annotated[
    list[str] | None,
    flags.text(
        "--allocator",
        "NAME",
        "Allocator of the arrays: malloc, hmalloc:near, hmalloc:TIER, …; repeat for several.",
    ),
]
Sizes = Annotated[list[int] | None, flags.count("--problem-size", help="Size; repeat for several.")]
TraceFile = Annotated[
    Path | None, flags.text("--trace", "FILE", "Write a trace of the arrays, untimed.")
]
After = Annotated[
    str | None, flags.text("--after", "l1|l2", "With --trace: last modeled cache level (l1).")
]
#: Measuring flags that also apply to a trace.
_OF_TRACES = ("seed", "quiet")


@dataclass(frozen=True)
class Choice:
    """The flags that these programs share in addition to those of measuring."""

    problem_size: Sizes = None
    allocator: AllocatorNames = None
    trace: TraceFile = None
    after: After = None


def run(
    verb: str,
    program: ProgramName,
    default_size: int,
    choice: Choice,
    shared: flags.Measuring,
    steps: int = 1,
) -> None:
    """Time the program, or write its trace."""
    from nearfar.report.console import note
    from nearfar.report.terminal import programs as programs_tables
    from nearfar.workflows.bench import programs as workflow

    work = workflow.Work(program, choice.problem_size or [default_size], steps)
    allocators = choice.allocator or ["malloc"]
    if choice.trace:
        _refuse_timing(choice.trace, allocators, shared)
        workflow.trace(work, choice.trace, after=choice.after, seed=shared.seed)
        if not shared.quiet:
            note(f"trace: {choice.trace}; next: nearfar sim {choice.trace}")
        return
    if choice.after is not None:
        raise BadInputError("--after requires --trace", "give --trace FILE, or leave --after out")
    done = workflow.measure(verb, work, shared.options, allocator_names=allocators)
    show_measured(done, programs_tables.program(done.result), shared.output)


def _refuse_timing(trace: Path, allocators: Sequence[str], shared: flags.Measuring) -> None:
    """Raise BadInputError for a timing flag, which has no effect on a trace."""
    timing = [
        field.name
        for field in fields(shared)
        if field.name not in _OF_TRACES and getattr(shared, field.name) != field.default
    ]
    if allocators != ["malloc"]:
        timing.insert(0, "allocator")
    if timing:
        raise BadInputError(
            f"--{timing[0]} has no effect with --trace, which times nothing",
            f"leave out --{timing[0]}, or --trace {trace}",
        )
