"""``nearfar doctor``: find what disturbs measurements on this machine, and the fix."""

from __future__ import annotations

from nearfar.cli.flags import Json
from nearfar.cli.output import show_document
from nearfar.cli.topo import From


def doctor(from_: From = None, json: Json = None) -> None:
    """Check the machine for what disturbs measurements, and say how to fix it.

    Reads only, changes nothing and requires no privileges; what it cannot read is `unknown`.
    Every record includes the findings. The exit code is always 0.

    Example: `nearfar doctor`, `nearfar doctor --json -`
    """
    from nearfar.machine.doctor import examine
    from nearfar.machine.root import Root
    from nearfar.machine.topology import machine_from, this_machine
    from nearfar.report.terminal.machine import findings

    machine = machine_from(from_) if from_ else this_machine()
    found = examine(machine, Root(from_) if from_ else Root())
    document = {"findings": [finding.model_dump(mode="json") for finding in found]}
    show_document(findings(found), document, json)
