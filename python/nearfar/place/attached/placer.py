"""Stay attached to a process and keep its pages where a plan says, at little cost."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError, MachineError
from nearfar.place.attached.block_turns import single_node_parts
from nearfar.place.attached.decisions import Decisions
from nearfar.place.attached.node_tiers import NodeTier, node_tiers
from nearfar.place.attached.page_mover import (
    Look,
    MoveLimits,
    PageMover,
    PageRun,
    StoppedError,
    WantedRange,
)
from nearfar.place.attached.regions import ProcessRegion, ProcessRegions
from nearfar.plan_files.reader import PlanFile, PlanRule
from nearfar.records.placement import Ending

if TYPE_CHECKING:
    from nearfar._native import ProcessPages
    from nearfar.process.running_process import RunningProcess

#: Range of the interval between two looks; it is halved after a look that found pages to move, and
#: doubled after one that did not.
_SHORTEST_S, _LONGEST_S = 0.1, 10.0
#: Maximum fraction of a CPU that looking may use.
_CPU_SHARE = 0.02


@dataclass(frozen=True)
class AppliedPlan:
    """The rules of a plan that can be applied from outside, and their tiers."""

    plan: PlanFile
    tiers: Mapping[str, NodeTier]

    def applied(self) -> list[PlanRule]:
        """The rules that are applied."""
        return [rule for rule in self.plan.rules if not rule.why_unseen()]

    def unapplied(self) -> list[PlanRule]:
        """The rules that only the program itself can apply."""
        return [rule for rule in self.plan.rules if rule.why_unseen()]


def applied_plan(plan: PlanFile, given: Mapping[str, str]) -> AppliedPlan:
    """``given``: tiers of the command line. Raises BadInputError if no rule can be applied from
    outside, and for tiers that are not nodes; MachineError for absent nodes."""
    rules = [rule for rule in plan.rules if not rule.why_unseen()]
    if not rules:
        raise BadInputError(
            f"{plan.path} has no rule that can be applied to a running program: rules with map= "
            "or globals= can, except by call site",
            "start the program with `nearfar run --plan`, which applies all rules",
        )
    known = {"near": "dram", **plan.tiers, **given}
    names = dict.fromkeys(rule.tier for rule in rules)
    return AppliedPlan(plan, node_tiers({name: known[name] for name in names}))


def require_same_user(program: RunningProcess) -> ProcessPages:
    """The pages of a process. Raises MachineError if this user may not move them."""
    from nearfar._native import NativeError, ProcessPages

    try:
        pages = ProcessPages.open(program.pid)
        ProcessRegions(program.pid).read()
    except NativeError as error:
        kind = BadInputError if error.args[0] == "not_found" else MachineError
        raise kind(error.args[1], error.args[2]) from None
    except PermissionError:
        raise MachineError(
            f"process {program.pid} ({program.name}) cannot be inspected: it belongs to another "
            "user, or runs with raised privileges",
            "run it as the same user, or with CAP_SYS_NICE and CAP_SYS_PTRACE: sudo",
        ) from None
    return pages


@dataclass
class Placed:
    """Pages that were found and moved until now.

    ``look``: the last complete look, or the part of the first one; ``moved``: bytes by rule.
    """

    look: Look = field(default_factory=Look)
    ended: Ending = "done"
    looks: int = 0
    time_s: float = 0.0
    moved: Counter[int] = field(default_factory=Counter)
    undone_bytes: int = 0
    regions: dict[int, ProcessRegion] = field(default_factory=dict)


class Placer:
    """Places the pages of one process."""

    def __init__(
        self,
        program: RunningProcess,
        pages: ProcessPages,
        limits: MoveLimits,
        journal: Callable[[Sequence[PageRun]], None] = lambda runs: None,
        progress: Callable[[Look], None] = lambda look: None,
    ) -> None:
        """``journal`` and ``progress``: as for PageMover."""
        self._program = program
        self._mover = PageMover(program, pages, limits, journal, progress)
        self._regions: dict[int, ProcessRegion] = {}

    def follow(self, wanted: AppliedPlan, *, once: bool) -> Placed:
        """Place what the plan's rules name; unless ``once``, until the program or the time ends, or
        KeyboardInterrupt."""
        reader = ProcessRegions(self._program.pid)
        decisions = Decisions(wanted.plan.rules)
        return self._run(lambda: self._ranges(reader.read(), decisions, wanted.tiers), once=once)

    def place(self, ranges: Iterable[WantedRange]) -> Placed:
        """Place these ranges once."""
        return self._run(lambda: ranges, once=True)

    def _ranges(
        self, regions: Iterable[ProcessRegion], decisions: Decisions, tiers: Mapping[str, NodeTier]
    ) -> Iterator[WantedRange]:
        self._regions = {}
        for region in regions:
            for part in decisions.of(region):
                self._regions[region.start] = region
                rule = part.rule
                for start, end, tier in single_node_parts(part.start, part.end, tiers[rule.tier]):
                    yield WantedRange(start, end, tier, rule.number, region.start)

    def _run(self, ranges: Callable[[], Iterable[WantedRange]], *, once: bool) -> Placed:
        found = Placed()
        begin = time.monotonic()
        interval = _SHORTEST_S
        try:
            while True:
                cpu_s = time.thread_time()
                try:
                    self._mover.look(ranges())
                finally:
                    look = self._keep(found)
                if once:
                    break
                cpu_s = time.thread_time() - cpu_s
                interval = _next_interval(interval, look)
                self._mover.pause(max(interval, cpu_s / _CPU_SHARE))
        except StoppedError as stopped:
            found.ended = stopped.ending
        except KeyboardInterrupt:
            found.ended = "interrupted"
        found.time_s = time.monotonic() - begin
        return found

    def _keep(self, found: Placed) -> Look:
        look = self._mover.current
        for (rule, _), count in look.by_range.items():
            found.moved[rule] += count.moved
        found.undone_bytes += look.undone_bytes()
        if look.complete or not found.look.complete:
            found.look, found.regions = look, self._regions
        found.looks += look.complete
        return look


def _next_interval(interval: float, look: Look) -> float:
    """Look sooner while there is something to move, but do not compete with the kernel."""
    is_busy = look.total().moved > 0 and not look.undone_bytes()
    return min(max(interval / 2 if is_busy else interval * 2, _SHORTEST_S), _LONGEST_S)
