"""Sorts, lattice Boltzmann and matrices of the Seoul thesis: timed, or traced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.measure import allocators, programs
from nearfar.workflows.plans import chosen_cpus
from nearfar.workflows.recording import Measured, recorded

if TYPE_CHECKING:
    from nearfar.records.choices import ProgramName
    from nearfar.records.programs import ProgramResult
    from nearfar.workflows.options import Options


@dataclass(frozen=True)
class Work:
    """One program, and its sizes and time steps."""

    program: ProgramName
    sizes: Sequence[int]
    steps: int = 1


def measure(
    verb: str, work: Work, options: Options, *, allocator_names: Sequence[str] = ("malloc",)
) -> Measured[ProgramResult]:
    """Time the program with its arrays from each allocator."""
    names = ["glibc" if name == "malloc" else name for name in allocator_names]
    effort = options.effort(30.0, apart=False)
    arguments = {
        "program": work.program,
        "n": list(work.sizes),
        "steps": work.steps,
        "allocators": names,
        "time_s": effort.budget_s,
    }
    with recorded(verb, arguments, options, "program") as recording:
        cpu = chosen_cpus(recording.machine, options.cpus)[0]
        found = tuple(allocators.resolve(name) for name in dict.fromkeys(names))
        sizes = tuple(sorted(set(work.sizes)))
        plan = programs.ProgramPlan(work.program, sizes, work.steps, found, cpu)
        result = programs.measure(recording.session, plan, effort)
        recording.keep("program", result)
    return recording.measured(result)


def trace(work: Work, file: Path, *, after: str | None, seed: int) -> None:
    """Write the accesses to the arrays that pass the caches of the thesis; times nothing."""
    levels = list(programs.CACHES)
    last = levels[0] if after is None else after
    if last not in levels:
        raise BadInputError(f"invalid --after {last}", f"write {' or '.join(levels)}")
    if len(work.sizes) != 1:
        raise BadInputError("a trace has exactly one size", "give --problem-size once")
    if file.exists():
        raise BadInputError(f"{file} already exists", "name a new file, or remove it")
    caches = [programs.CACHES[level] for level in levels[: levels.index(last) + 1]]
    programs.record(work.program, work.sizes[0], work.steps, seed, file, caches)
