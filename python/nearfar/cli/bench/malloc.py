"""``nearfar bench malloc``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags, ranges
from nearfar.errors import BadInputError, MachineError

if TYPE_CHECKING:
    from nearfar.measure.allocators import Allocator
    from nearfar.records.choices import MallocTest
    from nearfar.records.run import Skipped

#: A comma that starts another allocator: a tier contains commas too.
_BEFORE_ALLOCATOR = r",(?=\s*(?:glibc|hmalloc|mimalloc|jemalloc|memkind|preload)\b)"


@flags.grouped
def malloc(
    test: Annotated[
        list[str] | None,
        typer.Option(
            "--test",
            metavar="TEST,…",
            help="small, large, free-loop, half-free-loop or warm (default: all).",
        ),
    ] = None,
    threads: Annotated[
        list[str] | None,
        typer.Option("--threads", metavar="N,…", help="Threads (default: 1, and one per CPU)."),
    ] = None,
    allocator: Annotated[
        list[str] | None,
        typer.Option(
            "--allocator",
            metavar="NAME,…",
            help="glibc, hmalloc:near, hmalloc:TIER, mimalloc, jemalloc, memkind[:kind] or "
            "preload:LIBRARY (default: all that are installed).",
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(
            "-n",
            metavar="N",
            min=1,
            max=ranges.MOST_COUNT,
            help="Blocks per round (default: as in the Seoul thesis).",
        ),
    ] = None,
    *,
    shared: flags.Measuring,
) -> None:
    """Compare allocators with the four malloc tests of the Seoul thesis and a warm loop.

    small: 10^6 blocks of 1-512 B, then all freed. large: 10^6 of 1-524287 B, then all freed.
    free-loop: 10^4 of 1-524287 B all freed, ten rounds. half-free-loop: the same, but each round
    frees the even blocks and the end frees the rest. warm: one of 4096 live blocks of 1-512 B is
    replaced, repeatedly. The tests write the first byte of each block and divide the work among the
    threads. Each test runs in a fresh process, and allocators alternate. Ratios to glibc, which
    always runs, are of adjacent runs. Lists are separated by commas, or repeat the flag.

    Examples:

        nearfar bench malloc

        nearfar bench malloc --test small --threads 1,2,4 --allocator hmalloc:near,mimalloc

        nearfar bench malloc --test free-loop --allocator hmalloc:file:/data --json -
    """
    from nearfar.measure import malloc as measurement
    from nearfar.measure.session import Effort
    from nearfar.report import terminal
    from nearfar.workflows.plans import chosen_cpus, chosen_threads
    from nearfar.workflows.recording import recorded

    tests = _tests(_parts(test))
    counts = _numbers(_parts(threads))
    names = _parts(allocator, _BEFORE_ALLOCATOR)
    budget_s = shared.budget_s(120.0)
    arguments = {
        "tests": tests,
        "threads": counts,
        "allocators": names,
        "time_s": budget_s,
        "n": count,
    }
    with recorded("bench malloc", arguments, shared.kept) as recording:
        team = chosen_cpus(recording.machine, shared.cpus)
        chosen = chosen_threads(counts or sorted({1, len(team)}), len(team))
        found, missing = _allocators(names)
        plan = measurement.MallocPlan(tests, chosen, found, tuple(team), shared.seed, count)
        plan.check_room()
        effort = Effort(budget_s, shared.runs, shared.warmup, apart=False)
        result, skipped = measurement.measure(recording.session, plan, effort)
        recording.keep("malloc", result, [*missing, *skipped])
    recording.show(terminal.malloc(result), recording.document(result), shared.json)


def _parts(values: list[str] | None, comma: str = ",") -> list[str]:
    """Return the values given by commas or by repeating the flag, without duplicates."""
    parts = [part.strip() for value in values or [] for part in re.split(comma, value)]
    return list(dict.fromkeys(parts))


def _tests(names: list[str]) -> tuple[MallocTest, ...]:
    from nearfar.measure.malloc import TESTS

    for name in names:
        if name not in TESTS:
            raise BadInputError(f"unknown test '{name}'", f"use {', '.join(TESTS)}")
    return tuple(test for test in TESTS if not names or test in names)


def _numbers(texts: list[str]) -> list[int]:
    for text in texts:
        if not text.isdecimal() or int(text) == 0:
            raise BadInputError(f"invalid number of threads '{text}'", "write it like 1,2,4")
    return [int(text) for text in texts]


def _allocators(names: list[str]) -> tuple[tuple[Allocator, ...], list[Skipped]]:
    """Return the named allocators, glibc first; without names, those that are installed."""
    from nearfar.measure.allocators import GLIBC, USUAL, resolve
    from nearfar.records.run import Skipped

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
