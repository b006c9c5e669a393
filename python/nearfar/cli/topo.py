"""``nearfar topo``: show this machine's memory and its tiers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from nearfar.cli import flags

From = Annotated[
    Path | None,
    flags.text("--from", "DIR", "Directory with a recorded machine: hwloc.xml, sys/ and proc/."),
]


def topo(from_: From = None, json: flags.Json = None) -> None:
    """Show memory nodes, caches, devices, and the tiers for `--tier`.

    Reports size, distance and persistence of each tier, and whether its persistence is real.
    Requires no privileges and measures nothing: all figures come from the kernel and the firmware.

    Example: `nearfar topo`, `nearfar topo --json -`, `nearfar topo --from some-machine/`
    """
    from nearfar.machine.topology import machine_from, this_machine
    from nearfar.report.console import show
    from nearfar.report.terminal.machine import topology

    machine = machine_from(from_) if from_ else this_machine()
    show(topology(machine), machine.model_dump_json(indent=1), json)
