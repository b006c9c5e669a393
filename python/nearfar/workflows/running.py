"""Run a program with its data on given tiers, and check a plan's promise."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError, ExitCode, MachineError
from nearfar.place import preload
from nearfar.place.attached.node_tiers import nodes_with
from nearfar.place.statistics_files import read_statistics
from nearfar.plan_files.reader import read_plan
from nearfar.plan_files.tier_options import parse_tier_options
from nearfar.process.program_file import require_name
from nearfar.records.run_statistics import RunStatistics
from nearfar.report.wording import count
from nearfar.units import format_size
from nearfar.workflows.placing_static import PlacementFromOutside, placement_from_outside

if TYPE_CHECKING:
    from nearfar.place.preload import Placement
    from nearfar.place.promise import Promise

#: Exit code of a program that SIGSYS ended.
_FORBIDDEN_CALL = 128 + signal.SIGSYS

#: Receives one line for the user.
Notify = Callable[[str], None]


@dataclass(frozen=True)
class RunRequest:
    """The program, the tiers of its heap, and options of the run.

    - ``statistics``: count allocations by tier
    - ``check``: verify the plan's promise
    - ``traffic``: with ``check``, trace a second run
    - ``aside``: redirect the program's output to standard error
    - ``warn``: print notes before the run: that no library can be preloaded, and that a tier names
      nodes which this machine does not have
    """

    program: list[str]
    plan: Path | None = None
    tiers: tuple[str, ...] = ()
    statistics: bool = False
    check: bool = False
    traffic: bool = True
    aside: bool = False
    warn: bool = True


@dataclass(frozen=True)
class Ran:
    """Exit code of the program, and its statistics if there are any."""

    code: int
    statistics: RunStatistics | None = None
    checked: bool = False

    def exit_code(self) -> int:
        """The program's own code; if it is 0, that of the check.

        Raises MachineError if the check was requested and nothing was counted.
        """
        if self.code or not self.checked or self.statistics is None:
            return self.code
        if self.statistics.check is None:
            raise _unchecked(self.statistics)
        return ExitCode.OK if self.statistics.check.kept else ExitCode.VIOLATION


def _unchecked(statistics: RunStatistics) -> MachineError:
    """Why a run could not be checked."""
    name = statistics.program[0]
    if _why_ignored(name):
        return MachineError(
            f"{name} cannot be checked: its pages were not placed, or it ended before that",
            "see the message above; let it run for at least a second",
        )
    return MachineError(
        f"{name} cannot be checked: it left no statistics",
        "check a program that ends by exit() or a return from main",
    )


def run(request: RunRequest, notify: Notify) -> Ran:
    """Run the program; ``notify`` receives notes while it runs."""
    from nearfar.place.promise import read_promise

    if request.check and request.plan is None:
        raise BadInputError("--check requires a plan", "give --plan FILE")
    require_name(request.program[0])
    placement = _placement(request)
    outside = _from_outside(request, placement, notify)
    counts = request.statistics or request.check
    with tempfile.TemporaryDirectory(prefix="nearfar-run-") as folder:
        variables = preload.environment(
            placement, Path(folder) if counts else None, rules=request.check
        )
        preload.check(variables)
        _warn_of_absent_nodes(request, placement, notify)
        promise = read_promise(request.plan) if request.check and request.plan else None
        process, code = _start(request, variables, notify, outside)
        if code and (reason := _why_ended(request.program[0], code, placement)):
            notify(reason)
        if not counts or not process:
            return Ran(code)
        statistics = _statistics(request, code, placement, Path(folder), process)
    if outside:
        statistics.placement = outside.result
    elif not any(found.process == process for found in statistics.processes):
        notify(
            f"nearfar: {request.program[0]} left no statistics: it did not end by exit(), or no "
            "library can be preloaded into it"
        )
    if promise:
        _check(statistics, placement, promise, notify, traced=request.traffic and not code)
    return Ran(code, statistics, checked=request.check)


def _why_ended(program: str, code: int, placement: Placement) -> str:
    """Why a program may have ended with this code; empty if the placement is not a cause."""
    if code == _FORBIDDEN_CALL:
        return _why_forbidden(program)
    if limited := _limited(placement):
        return (
            f"nearfar: {program} ended with code {code}: if tier {limited} was full, malloc() "
            "returned NULL\n"
            "  next: give the tier a larger capacity=, or add overflow=spill:near"
        )
    return ""


def _warn_of_absent_nodes(request: RunRequest, placement: Placement, notify: Notify) -> None:
    """Report tiers with weights for nodes that this machine does not have: their pages are on other
    nodes."""
    if not request.warn:
        return
    tiers = dict(placement.tiers)
    if placement.plan is not None:
        tiers = {**read_plan(placement.plan, tiers).tiers, **tiers}
    for name, absent in _absent_nodes(tiers).items():
        nodes = ", ".join(map(str, sorted(absent)))
        notify(
            f"nearfar: tier {name} is {tiers[name]}, and this machine has no node {nodes}: pages "
            "of its sites are on other nodes, not divided by the weights"
        )


def _absent_nodes(tiers: Mapping[str, str]) -> dict[str, set[int]]:
    """The nodes of weights that this machine does not have, of tiers that name such nodes."""
    existing = nodes_with("has_memory")
    found = {
        name: parse_tier_options(text).weights.keys() - existing for name, text in tiers.items()
    }
    return {name: absent for name, absent in found.items() if absent}


def _why_forbidden(program: str) -> str:
    return (
        f"nearfar: {program} ended with code {_FORBIDDEN_CALL}, as after SIGSYS: a seccomp filter "
        "ends it at a system call that it does not allow\n"
        "  next: allow mbind, move_pages and get_mempolicy, which libhmalloc calls in the program, "
        "or let the filter return an error"
    )


def _limited(placement: Placement) -> str:
    """The first tier that can be full before the machine's memory is; empty if none can."""
    for name, text in placement.tiers.items():
        options = parse_tier_options(text)
        if options.capacity_bytes is not None and not options.spill_to:
            return name
    return ""


def _why_ignored(program: str) -> str:
    """Why a library cannot be preloaded into a program; empty if it can."""
    from nearfar.process.elf import ignores_preload
    from nearfar.process.program_file import find_program

    file = find_program(program)
    return ignores_preload(file) if file else ""


def _from_outside(
    request: RunRequest, placement: Placement, notify: Notify
) -> PlacementFromOutside | None:
    """The placement from outside of a program into which no library can be preloaded. None if one
    can be preloaded, or if the plan has no rule that can be applied from outside."""
    why = _why_ignored(request.program[0])
    if not why:
        return None
    found = placement_from_outside(placement, notify)
    if request.check and not found:
        raise MachineError(
            f"{request.program[0]} cannot be checked: {why}, so no library can be preloaded, and "
            "the plan has no rule that can be applied from outside",
            "use a plan that names mappings or globals: `nearfar advise` writes one for it",
        )
    what = (
        "its pages are moved from outside, as `nearfar place` does"
        if found
        else "its memory is not redirected"
    )
    if request.warn:
        notify(f"nearfar: {why}: no library can be preloaded, and {what}")
    return found


def _check(
    statistics: RunStatistics,
    placement: Placement,
    promise: Promise,
    notify: Notify,
    *,
    traced: bool,
) -> None:
    """Add the result of the check, if the library counted anything, or pages were placed."""
    from nearfar.place.attached.checking import check_placement
    from nearfar.place.checking import check_run
    from nearfar.workflows.traffic import traffic_of

    if statistics.placement:
        statistics.check = check_placement(promise, statistics.placement)
    if not any(found.rules for found in statistics.processes):
        return
    one_node = len(nodes_with("has_memory")) == 1
    if one_node:
        notify(
            "nearfar: this machine has one memory node, so that the node of a page proves nothing: "
            "bytes allocated by rule and tier are compared"
        )
    unplaced = _unplaced(placement, statistics)
    unchecked = [rule for rule in promise.rules if rule.rule in unplaced]
    promise = promise.model_copy(
        update={"rules": [rule for rule in promise.rules if rule.rule not in unplaced]}
    )
    counted = None
    if traced and placement.plan is not None:
        counted = traffic_of(statistics.program, placement.plan, promise, notify)
    statistics.check = check_run(promise, statistics.processes, counted, one_node=one_node)
    statistics.check.unchecked_bytes = sum(rule.allocated_bytes for rule in unchecked)
    if unchecked:
        notify(
            f"nearfar: not checked: {count(len(unchecked), 'promised rule')} "
            f"({format_size(statistics.check.unchecked_bytes)}) for mappings and globals, whose "
            "tier is not memory of nodes of this machine"
        )


def _unplaced(placement: Placement, statistics: RunStatistics) -> set[int]:
    """Rules for mappings and globals that could not be applied: their tier holds heap blocks only,
    or this machine lacks one of its nodes."""
    if placement.plan is None:
        return set()
    counted = {number for process in statistics.processes for number in process.rules}
    plan = read_plan(placement.plan, placement.tiers)
    absent = _absent_nodes({**plan.tiers, **placement.tiers})
    return {
        rule.number
        for rule in plan.rules
        if rule.placed != "block" and (rule.number not in counted or rule.tier in absent)
    }


def _placement(request: RunRequest) -> Placement:
    from nearfar.files import read_text_bytes, require_file

    if request.plan:
        next_step = (
            "`nearfar advise -- PROGRAM` writes one; docs/how-to/hmalloc.md describes the format"
        )
        require_file(request.plan, "plan", next_step)
        read_text_bytes(request.plan, next_step)
    return preload.Placement(request.plan, preload.parse_tiers(list(request.tiers)))


def _start(
    request: RunRequest,
    variables: dict[str, str],
    notify: Notify,
    outside: PlacementFromOutside | None,
) -> tuple[int, int]:
    """Run the program; return its process number (0 if it did not start) and its exit code."""
    from nearfar.process import launch

    try:
        return launch.run(
            request.program,
            variables,
            aside=request.aside,
            started=outside.start if outside else None,
        )
    except launch.StartError as error:
        notify(
            f"nearfar: cannot start {request.program[0]}: {error.why}\n"
            "  next: check its name and mode"
        )
        return 0, error.code
    finally:
        if outside:
            outside.join()


def _statistics(
    request: RunRequest, code: int, placement: Placement, folder: Path, process: int
) -> RunStatistics:
    return RunStatistics(
        program=request.program,
        exit_code=code,
        plan=str(placement.plan) if placement.plan else None,
        tiers=dict(placement.tiers),
        processes=read_statistics(folder, process),
    )
