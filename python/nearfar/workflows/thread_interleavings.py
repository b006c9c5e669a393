"""Crash exploration of several interleavings of a program's threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from pathlib import Path

from nearfar.errors import BadInputError
from nearfar.verify.explorer import with_lines
from nearfar.verify.findings import Exploration, Finding
from nearfar.verify.recorder import Turn


@dataclass
class InterleavedRun:
    """One run of a program: its budget of images, where failing ones are kept, its interleaving.

    Once it has run, ``pool`` is the file that was recorded. After a run in which no thread is held
    (``turn.flush`` 0), ``turns`` are the flushes at which a later run can hold a thread.
    """

    budget: int
    folder: Path
    turn: Turn | None = None
    pool: Path | None = None
    turns: list[Turn] = field(default_factory=list)


#: Records a program and explores what it leaves.
Run = Callable[[InterleavedRun], Exploration]


def explore_interleavings(
    run: Run, program: Sequence[str], most: int, budget: int, folder: Path
) -> Exploration:
    """Run a program up to ``most`` times, each with another interleaving of its threads.

    In the first runs, each thread that the program creates goes first once, without waiting. In
    each later run, one thread waits before one of its flushes. Raises BadInputError if the program
    did not create its pool.
    """
    new = [Path(word) for word in program[1:] if not Path(word).exists()]
    first = InterleavedRun(_part(budget, 0, most), folder / "1", Turn(1))
    result = _run(run, first)
    if not first.turns:
        raise BadInputError(
            "no thread that the program created flushes a store of its own in an operation",
            "report the operations of its threads: nearfar/crash_intrinsics.h",
        )
    pool = _created_pool(first.pool, new)
    rest = list(_later_turns(first.turns))
    result.interleavings = 1 + len(rest)
    result.interleavings_tried = 1
    for number, turn in enumerate(rest[: most - 1], 2):
        pool.unlink(missing_ok=True)
        part = _part(budget, result.states, min(most, result.interleavings) - number + 1)
        _add(result, _run(run, InterleavedRun(part, folder / str(number), turn)), turn)
        if result.interrupted:
            break
        result.interleavings_tried += 1
    with_lines(result)
    return result


def _run(run: Run, this_run: InterleavedRun) -> Exploration:
    this_run.folder.mkdir()
    try:
        return run(this_run)
    finally:
        if this_run.folder.is_dir() and not any(this_run.folder.iterdir()):
            this_run.folder.rmdir()


def _part(budget: int, used: int, runs: int) -> int:
    """The number of images that each of the remaining ``runs`` may explore; 0: no limit."""
    return max((budget - used) // runs, 1) if budget else 0


def _created_pool(pool: Path | None, new: Sequence[Path]) -> Path:
    for path in new:
        if pool is not None and path.exists() and path.samefile(pool):
            return path
    raise BadInputError(
        f"every interleaving begins with a new pool, and {pool} is older than the first",
        "remove it, and name it in an argument of a program that creates it",
    )


def _later_turns(turns: Sequence[Turn]) -> Iterator[Turn]:
    """All interleavings but the first: the other threads go first, then each is held."""
    threads = sorted({turn.thread for turn in turns} - {1})
    yield from (Turn(thread) for thread in threads)
    of_each = [[turn for turn in turns if turn.thread == thread] for thread in (1, *threads)]
    yield from (turn for turn in chain(*zip_longest(*of_each)) if turn is not None)


def _add(result: Exploration, part: Exploration, turn: Turn) -> None:
    """Add the result of another interleaving. A finding with a known cause increases the count of
    the finding with this cause."""
    known = {_cause(finding): i for i, finding in enumerate(result.findings)}
    for finding in part.findings:
        if (i := known.get(_cause(finding))) is not None:
            violations = result.findings[i].violations + finding.violations
            result.findings[i] = replace(result.findings[i], violations=violations)
            continue
        found_at = finding.found_at_image + result.states
        result.findings.append(replace(finding, found_at_image=found_at, held=turn.store))
    result.states += part.states
    result.states_left += part.states_left
    result.points += part.points
    result.violations += part.violations
    result.recovery_states += part.recovery_states
    result.time_s += part.time_s
    result.cut_off |= part.cut_off
    result.program_failed |= part.program_failed
    result.recording_cut_short |= part.recording_cut_short
    result.interrupted |= part.interrupted
    result.warnings += [text for text in part.warnings if text not in result.warnings]


def _cause(finding: Finding) -> tuple[str, str, str, str]:
    return finding.failure, finding.missing, finding.store, finding.before
