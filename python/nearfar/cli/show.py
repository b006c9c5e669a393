"""``nearfar show``: print a record, a profile or a host in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli.flags import Json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nearfar.workflows.subjects import Subject


def show(
    what: Annotated[
        str,
        typer.Argument(
            metavar="RECORD|PROFILE|HOST",
            help="A run directory, a shipped profile or host, or a .toml file.",
            show_default=False,
        ),
    ],
    json: Json = None,
) -> None:
    """Print a record, a device profile or a host in the terminal.

    The host `this` is the machine that nearfar runs on.

    Examples:

        nearfar show nearfar-runs/20250102T030405Z-study

        nearfar show optane-100
    """
    from nearfar.report.console import print_result, write_json
    from nearfar.workflows.subjects import load

    subject = load(what)
    if json is not None:
        write_json(json, subject.model_dump_json(indent=1, exclude_none=True))
    if json != "-":
        print_result(_shown(subject))


def _shown(subject: Subject) -> RenderableType:
    from nearfar.records.profile import Host, Profile
    from nearfar.records.run import Run
    from nearfar.report import terminal

    if isinstance(subject, Run):
        return terminal.record(subject)
    if isinstance(subject, Profile | Host):
        return terminal.sheet(subject)
    return terminal.answer(subject)
