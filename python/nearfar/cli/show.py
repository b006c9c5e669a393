"""``nearfar show``: print a record, a profile or a host in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli.flags import Json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nearfar.workflows.subjects import Subject


What = Annotated[
    str,
    typer.Argument(
        metavar="RECORD|PROFILE|HOST",
        help="A run directory, a shipped profile or host, or a .toml file.",
        show_default=False,
    ),
]


All = Annotated[bool, typer.Option("--all", help="Print all points of the curves of a profile.")]


def show(what: What, every: All = False, json: Json = None) -> None:
    """Print a record, a device profile or a host in the terminal.

    The host `this` is the machine that nearfar runs on.

    Examples:

        nearfar show nearfar-runs/20250102T030405Z-study

        nearfar show optane-100
    """
    from nearfar import api
    from nearfar.report import console

    subject = api.load(what)
    console.show(_shown(subject, every), subject.model_dump_json(indent=1, exclude_none=True), json)


def _shown(subject: Subject, every: bool) -> RenderableType:
    from nearfar.records.profile import Host, Profile
    from nearfar.records.run import Run
    from nearfar.report.terminal import answer, sheet
    from nearfar.report.terminal import record as record_tables

    if isinstance(subject, Run):
        return record_tables.record(subject)
    if isinstance(subject, Profile | Host):
        return sheet.sheet(subject, all_points=every)
    return answer.answer(subject)
