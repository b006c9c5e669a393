"""``nearfar doctor``: find what disturbs measurements on this machine, and the fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.cli.flags import Json
from nearfar.cli.topo import From
from nearfar.report.console import print_result, write_json

if TYPE_CHECKING:
    from rich.table import Table

    from nearfar.records.run import Finding

_ORDER = ("warning", "unknown", "note", "ok")


def doctor(from_: From = None, json: Json = None) -> None:
    """Check the machine for what disturbs measurements, and say how to fix it.

    Reads only, changes nothing and requires no privileges; what it cannot read is `unknown`.
    Every record includes the findings. The exit code is always 0.

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
        write_json(
            json,
            TypeAdapter(dict[str, list[Finding]])
            .dump_json({"findings": findings}, indent=1)
            .decode(),
        )
    if json != "-":
        print_result(_page(findings))


def _page(findings: list[Finding]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for finding in sorted(findings, key=lambda f: _ORDER.index(f.level)):
        text = Text(finding.found)
        if finding.level != "ok":
            if finding.why:
                text.append(f"\n{finding.why}", style="dim")
            if finding.mend:
                text.append(f"\n→ {finding.mend}")
        style = {"warning": "bold yellow", "ok": "green"}.get(finding.level, "")
        table.add_row(Text(finding.level, style=style), Text(finding.check), text)
    return table
