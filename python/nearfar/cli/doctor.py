"""``nearfar doctor``: what on this machine would spoil a measurement, and how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.cli.console import print_result, write_json
from nearfar.cli.options import Json
from nearfar.cli.topo import From

if TYPE_CHECKING:
    from rich.table import Table

    from nearfar.records.run import Finding

_ORDER = ("warning", "unknown", "note", "ok")


def doctor(from_: From = None, json: Json = None) -> None:
    """Check what spoils measurements, and say how to mend each.

    Looks only, changes nothing and needs no privileges; what it may not see is `unknown`.
    Its findings are kept in every record. The exit code is 0 whatever it finds.

    Example: `nearfar doctor`, `nearfar doctor --json -`
    """
    from pydantic import TypeAdapter

    from nearfar.machine.doctor import examine
    from nearfar.machine.root import Root
    from nearfar.machine.topology import machine_from, this_machine
    from nearfar.records.run import Finding

    machine = machine_from(from_) if from_ else this_machine()
    findings = examine(machine, Root(from_) if from_ else Root())
    if json:
        write_json(json, TypeAdapter(dict[str, list[Finding]]).dump_json(
            {"findings": findings}, indent=1).decode())  # fmt: skip
    if json != "-":
        print_result(_page(findings))


def _page(findings: list[Finding]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for finding in sorted(findings, key=lambda f: _ORDER.index(f.level)):
        told = Text(finding.found)
        if finding.level != "ok":
            if finding.why:
                told.append(f"\n{finding.why}", style="dim")
            if finding.mend:
                told.append(f"\n→ {finding.mend}")
        style = {"warning": "bold yellow", "ok": "green"}.get(finding.level, "")
        table.add_row(Text(finding.level, style=style), Text(finding.check), told)
    return table
