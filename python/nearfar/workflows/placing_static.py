"""Place a program that this process starts and into which no library can be preloaded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError, MachineError
from nearfar.place.attached.outcome import placement_result
from nearfar.place.attached.page_mover import MoveLimits
from nearfar.place.attached.placer import AppliedPlan, Placer, applied_plan, require_same_user
from nearfar.plan_files.reader import read_plan
from nearfar.process.running_process import RunningProcess

if TYPE_CHECKING:
    from nearfar.place.preload import Placement
    from nearfar.records.placement import PlacementResult


class PlacementFromOutside:
    """A thread that stays attached to the program until it ends."""

    def __init__(self, plan: AppliedPlan, notify: Callable[[str], None]) -> None:
        self.result: PlacementResult | None = None
        self._plan = plan
        self._notify = notify
        self._thread: threading.Thread | None = None

    def start(self, pid: int) -> None:
        """Attach to the program. It has not been reaped yet, so its PID is not reused."""
        try:
            program = RunningProcess(pid)
        except BadInputError:  # it has ended already
            return
        self._thread = threading.Thread(target=self._place, args=(program,), daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait until the thread has seen that the program ended."""
        if self._thread is not None:
            self._thread.join()

    def _place(self, program: RunningProcess) -> None:
        try:
            with program:
                command = program.command()
                pages = require_same_user(program)
                placed = Placer(program, pages, MoveLimits()).follow(self._plan, once=False)
                self.result = placement_result(program, command, placed, self._plan)
        except BadInputError:
            pass  # it has ended
        except MachineError as error:  # the program goes on, its pages stay where they are
            self._notify(f"nearfar: pages of the program are not moved: {error.what}")


def placement_from_outside(
    placement: Placement, notify: Callable[[str], None]
) -> PlacementFromOutside | None:
    """The placement of a program into which no library can be preloaded; see the class.

    None without a plan, or if no rule of the plan can be applied from outside. Raises BadInputError
    for an invalid plan, MachineError for absent nodes.
    """
    if placement.plan is None:
        return None
    plan = read_plan(placement.plan, placement.tiers)
    if all(rule.why_unseen() for rule in plan.rules):
        return None
    return PlacementFromOutside(applied_plan(plan, placement.tiers), notify)
