"""``nearfar doctor``: find what disturbs measurements on this machine, and the fix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearfar.cli.flags import Json
from nearfar.cli.output import show_document
from nearfar.cli.topo import From

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

Tiers = Annotated[
    bool,
    typer.Option("--tiers", help="Measure all memory nodes, and check what firmware claims."),
]


def doctor(from_: From = None, tiers: Tiers = False, json: Json = None) -> None:
    """Check the machine for what disturbs measurements, and say how to fix it.

    Reads only, changes nothing and requires no privileges; what it cannot read is `unknown`.
    Every record includes the findings. The exit code is always 0.

    `--tiers` checks something else, with a measurement of a few seconds: HMAT figures, memory
    tiers, SLIT distances and interleave weights of all memory nodes. Each wrong one is a warning
    with its consequence and what corrects it.

    Example: `nearfar doctor`, `nearfar doctor --json -`, `nearfar doctor --tiers`
    """
    if tiers:
        _show_claims(from_, json)
        return
    from nearfar.machine.doctor import examine
    from nearfar.machine.root import Root
    from nearfar.machine.topology import machine_from, this_machine
    from nearfar.report.terminal.machine import findings

    machine = machine_from(from_) if from_ else this_machine()
    found = examine(machine, Root(from_) if from_ else Root())
    document = {"findings": [finding.model_dump(mode="json") for finding in found]}
    show_document(findings(found), document, json)


def _show_claims(from_: Path | None, json: str | None) -> None:
    """Print the claims on memory nodes, and the measurement. Raises BadInputError with --from."""
    from rich.console import Group

    from nearfar.errors import BadInputError
    from nearfar.report.terminal.depth import matrix
    from nearfar.report.terminal.machine import findings
    from nearfar.workflows.options import Options
    from nearfar.workflows.tier_claims import check_claims

    if from_ is not None:
        raise BadInputError(
            "--tiers measures this machine, and --from describes another one",
            "run `nearfar doctor --tiers` on that machine",
        )
    checked = check_claims(Options().progress)
    document: dict[str, Any] = {
        "findings": [finding.model_dump(mode="json") for finding in checked.findings]
    }
    parts: list[RenderableType] = [findings(checked.findings)]
    if checked.matrix is not None:
        document["matrix"] = checked.matrix.model_dump(mode="json", exclude_none=True)
        parts.append(matrix(checked.matrix))
    show_document(Group(*parts), document, json)
