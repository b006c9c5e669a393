"""Allocators compared by the malloc tests of the Seoul thesis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError, MachineError
from nearfar.measure import malloc
from nearfar.measure.allocators import GLIBC, USUAL, resolve
from nearfar.records.run import Skipped
from nearfar.workflows.plans import chosen_cpus, chosen_threads
from nearfar.workflows.recording import Measured, recorded

if TYPE_CHECKING:
    from nearfar.measure.allocators import Allocator
    from nearfar.records.allocators import MallocResult
    from nearfar.records.choices import MallocTest
    from nearfar.workflows.options import Options


def measure(
    options: Options,
    *,
    tests: Sequence[str] = (),
    threads: Sequence[int] = (),
    allocators: Sequence[str] = (),
    blocks: int | None = None,
) -> Measured[MallocResult]:
    """Measure the named tests and allocators; without names all that there are."""
    chosen_tests = _tests(tests)
    arguments = {
        "tests": chosen_tests,
        "threads": list(threads),
        "allocators": list(allocators),
        "time_s": options.budget_s(120.0),
        "n": blocks,
    }
    with recorded("bench malloc", arguments, options, "malloc") as recording:
        team = chosen_cpus(recording.machine, options.cpus)
        counts = chosen_threads(threads or sorted({1, len(team)}), len(team))
        found, missing = _allocators(allocators)
        plan = malloc.MallocPlan(chosen_tests, counts, found, tuple(team), options.seed, blocks)
        plan.check_room()
        result, skipped = malloc.measure(
            recording.session, plan, options.effort(120.0, apart=False)
        )
        recording.keep("malloc", result, [*missing, *skipped])
    return recording.measured(result)


def _tests(names: Sequence[str]) -> tuple[MallocTest, ...]:
    for name in names:
        if name not in malloc.TESTS:
            raise BadInputError(f"unknown test '{name}'", f"use {', '.join(malloc.TESTS)}")
    return tuple(test for test in malloc.TESTS if not names or test in names)


def _allocators(names: Sequence[str]) -> tuple[tuple[Allocator, ...], list[Skipped]]:
    """Return the named allocators, glibc first; without names, those that are installed."""
    if names:
        return tuple(resolve(name) for name in dict.fromkeys([GLIBC, *names])), []
    found: list[Allocator] = []
    missing: list[Skipped] = []
    for name in USUAL:
        try:
            found.append(resolve(name))
        except MachineError as error:
            why = f"{error.what}: {error.next_step}"
            missing.append(Skipped(section="malloc", what=name, why=why))
    return tuple(found), missing
