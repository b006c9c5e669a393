"""What on a machine spoils measurements, why, and how to mend it.

A check is a function of the machine and of the root that ``/proc``, ``/sys`` and ``/dev`` are read
below. It looks only, never raises for what is missing, and returns one finding.
"""

from __future__ import annotations

from nearfar.machine.doctor import devices, limits, memory, neighbours, persistent, processor
from nearfar.machine.model import Machine
from nearfar.machine.root import Root
from nearfar.records.run import Finding

_GROUPS = (processor, memory, limits, neighbours, devices, persistent)
_HERE = Root()


def examine(machine: Machine, root: Root = _HERE) -> list[Finding]:
    """Run every check: on the machine we run on, or on one described below ``root``."""
    return [check(machine, root) for group in _GROUPS for check in group.CHECKS]
