"""Conditions of a machine that disturb measurements, with cause and fix.

A check is a function of the machine and of the root below which ``/proc``, ``/sys`` and ``/dev``
are read. It only reads, does not raise for missing files, and returns one finding.
"""

from __future__ import annotations

from nearfar.machine.doctor import devices, limits, memory, neighbors, persistent, processor
from nearfar.machine.model import Machine
from nearfar.machine.root import Root
from nearfar.records.run import Finding

_GROUPS = (processor, memory, limits, neighbors, devices, persistent)
_HERE = Root()


def examine(machine: Machine, root: Root = _HERE) -> list[Finding]:
    """Run every check: on this machine, or on a machine described below ``root``."""
    return [check(machine, root) for group in _GROUPS for check in group.CHECKS]
