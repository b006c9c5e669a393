"""Other users of the machine: load, steal time, the hypervisor."""

from __future__ import annotations

from nearfar.machine.doctor.findings import note, ok, unknown, warning
from nearfar.machine.model import Machine
from nearfar.machine.root import Root
from nearfar.records.run import Finding

#: Runnable processes, averaged over a minute, up to which a machine counts as idle.
_IDLE_LOAD = 0.3
#: Fraction of all CPU time since boot that a hypervisor may have taken without a warning.
_LITTLE_STEAL = 0.005


def load(_machine: Machine, root: Root) -> Finding:
    """Runnable processes over the last minute."""
    why = "other processes take processor time, cache and memory bandwidth"
    look = root.look("proc/loadavg")
    try:
        recent = float((look.text or "").split()[0])
    except (IndexError, ValueError):
        return unknown("load", look, why)
    found = f"{recent:.2f} runnable processes over the last minute"
    if recent <= _IDLE_LOAD:
        return ok("load", found)
    return warning("load", found, why, "see `top`, stop what is not needed, and measure again")


def steal(_machine: Machine, root: Root) -> Finding:
    """Steal time since boot: CPU time that the hypervisor gave to other guests."""
    why = "stolen time makes timings long without any trace in this machine"
    look = root.look("proc/stat")
    try:
        ticks = [int(x) for x in (look.text or "").splitlines()[0].split()[1:9]]
        share = ticks[7] / sum(ticks)
    except (IndexError, ValueError, ZeroDivisionError):
        return unknown("steal time", look, why)
    found = f"{share:.2%} of all processor time since boot"
    if share <= _LITTLE_STEAL:
        return ok("steal time", found)
    return warning("steal time", found, why, "ask for dedicated processors, or another host")


def virtual_machine(machine: Machine, _root: Root) -> Finding:
    """Whether a hypervisor runs below this system."""
    if machine.virtual_machine is None:
        return ok("virtual machine", "none: this is the hardware itself")
    return note(
        "virtual machine",
        machine.virtual_machine,
        "cache sizes, nodes and persistence are what the host claims; page walks go through two "
        "tables, and neighbors on the host cannot be seen",
        "measure on bare metal for figures of the hardware",
    )


CHECKS = (load, steal, virtual_machine)
