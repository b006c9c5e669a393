"""Place the pages of a running program by a plan, or revert that."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.place.attached import undo_journal
from nearfar.place.attached.node_tiers import NodeTier
from nearfar.place.attached.outcome import placement_result, revert_result
from nearfar.place.attached.page_mover import DEFAULT_RATE, Look, MoveLimits, WantedRange
from nearfar.place.attached.page_origins import PageOrigins
from nearfar.place.attached.placer import AppliedPlan, Placer, applied_plan, require_same_user
from nearfar.place.preload import parse_tiers
from nearfar.plan_files.reader import read_plan
from nearfar.process.running_process import RunningProcess
from nearfar.units import PAGE_BYTES, format_size

if TYPE_CHECKING:
    from nearfar._native import ProcessPages
    from nearfar.records.placement import PlacementResult
    from nearfar.workflows.options import Options
    from nearfar.workflows.recording import Measured, Recording


@dataclass(frozen=True)
class PlaceRequest:
    """A running program, and a plan or the record to revert.

    ``tiers``: as ``--tier`` has them; ``once``: one look; ``run``: the record to revert, None for
    the newest of this process; ``rate_bytes_per_s``: None for no limit; ``time_s``: None for no
    limit; ``shared``: also move pages that other processes map.
    """

    pid: int
    plan: Path | None = None
    tiers: tuple[str, ...] = ()
    once: bool = False
    revert: bool = False
    run: Path | None = None
    rate_bytes_per_s: float | None = DEFAULT_RATE
    time_s: float | None = None
    shared: bool = False

    def limits(self) -> MoveLimits:
        """The limits of moving, from now on."""
        deadline = None if self.time_s is None else time.monotonic() + self.time_s
        return MoveLimits(self.rate_bytes_per_s, deadline, self.shared)


def place(wanted: PlaceRequest, options: Options) -> Measured[PlacementResult]:
    """Place or revert, with a record. Raises BadInputError, MachineError before pages move."""
    if (wanted.plan is not None) == wanted.revert:
        raise BadInputError(
            "name a plan, or --revert, and not both", "nearfar place --pid PID --plan PLAN"
        )
    with RunningProcess(wanted.pid) as program:
        pages = require_same_user(program)
        if wanted.plan is None:
            journal = undo_journal.find_journal(program.identity, wanted.run)
            undo_journal.require_free(journal)
            origins = undo_journal.read_origins(journal)

            def work(recording: Recording) -> PlacementResult:
                return _reverted(wanted, program, pages, recording, journal, origins)
        else:
            given = parse_tiers(wanted.tiers)
            plan = applied_plan(read_plan(wanted.plan, given), given)

            def work(recording: Recording) -> PlacementResult:
                return _placed(wanted, program, pages, recording, plan)

        return _recorded(wanted, options, work)


def _recorded(
    wanted: PlaceRequest, options: Options, work: Callable[[Recording], PlacementResult]
) -> Measured[PlacementResult]:
    from nearfar.workflows.recording import recorded

    arguments = {
        "pid": wanted.pid,
        "plan": str(wanted.plan) if wanted.plan else None,
        "tiers": list(wanted.tiers),
        "once": wanted.once,
        "revert": wanted.revert,
        "rate_bytes_per_s": wanted.rate_bytes_per_s,
        "time_s": wanted.time_s,
        "shared": wanted.shared,
    }
    with recorded("place", arguments, options) as recording:
        result = work(recording)
        recording.keep("placement", result)
    return recording.measured(result)


def _placed(
    wanted: PlaceRequest,
    program: RunningProcess,
    pages: ProcessPages,
    recording: Recording,
    plan: AppliedPlan,
) -> PlacementResult:
    command = program.command()
    if not wanted.once:
        recording.session.progress.note(
            f"attached to process {program.pid}: new pages are moved until it ends, --time is "
            "over, or Ctrl-C; --once moves those that are there, and ends"
        )
    with undo_journal.UndoJournal(recording.directory.path, program.identity) as journal:
        shown = _progress(recording, program)
        placer = Placer(program, pages, wanted.limits(), journal.add, shown)
        placed = placer.follow(plan, once=wanted.once)
    return placement_result(program, command, placed, plan)


def _reverted(
    wanted: PlaceRequest,
    program: RunningProcess,
    pages: ProcessPages,
    recording: Recording,
    journal: Path,
    origins: PageOrigins,
) -> PlacementResult:
    command = program.command()
    runs = list(origins.runs())
    shown = _progress(recording, program)
    placer = Placer(program, pages, wanted.limits(), progress=shown)
    placed = placer.place(
        WantedRange(address, address + count * PAGE_BYTES, _only(node))
        for address, count, node in runs
    )
    if placed.look.complete:
        undo_journal.mark_undone(journal)
    all_pages = sum(count for _, count, _ in runs)
    return revert_result(program, command, placed, str(journal.parent), all_pages)


def _only(node: int) -> NodeTier:
    return NodeTier(f"node {node}", f"numa:{node}", frozenset({node}))


def _progress(recording: Recording, program: RunningProcess) -> Callable[[Look], None]:
    show = recording.session.progress

    def report(look: Look) -> None:
        total = look.total()
        moved = format_size(total.moved)
        resident = program.resident_bytes() or 1
        show.step(f"{moved} moved", min(total.wanted / resident, 1.0))

    return report
