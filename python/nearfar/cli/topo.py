"""``nearfar topo``: show this machine's memory and its tiers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from nearfar.cli import flags

From = Annotated[
    Path | None,
    flags.text("--from", "DIR", "Directory with a recorded machine: hwloc.xml, sys/ and proc/."),
]


Save = Annotated[
    Path | None,
    flags.text("--save", "DIR", "New or empty directory for an anonymous description."),
]


def topo(from_: From = None, save: Save = None, json: flags.Json = None) -> None:
    """Show memory nodes, caches, devices, and the tiers for `--tier`.

    Reports size, distance and persistence of each tier, and whether its persistence is real.
    Requires no privileges and measures nothing: all figures come from the kernel and the firmware.
    `--save` writes what `--from` reads, without host name, serial numbers, addresses of network
    devices and paths.

    Example: `nearfar topo`, `nearfar topo --json -`, `nearfar topo --save some-machine/`,
    `nearfar topo --from some-machine/`
    """
    from nearfar.machine import saving
    from nearfar.machine.root import Root
    from nearfar.machine.topology import machine_from, this_machine
    from nearfar.report.console import show
    from nearfar.report.terminal.machine import saved_machine, topology

    if save:
        saving.require_empty(save)
    machine = machine_from(from_) if from_ else this_machine()
    text = topology(machine)
    if save:
        saved = saving.collect(Root(from_) if from_ else Root(), machine)
        saving.write(saved, save)
        machine, text = machine_from(save), saved_machine(save, len(saved.files), saved.unread)
    show(text, machine.model_dump_json(indent=1), json)
