"""``nearfar show``: a record, a profile or a host in the terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli.options import Json


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

    The host `this` is the machine nearfar runs on.

    Examples:

        nearfar show nearfar-runs/20250102T030405Z-study

        nearfar show optane-100
    """
    from nearfar.cli.console import print_result, write_json
    from nearfar.cli.subjects import load
    from nearfar.records.run import Run

    subject = load(what)
    if json is not None:
        write_json(json, subject.model_dump_json(indent=1, exclude_none=True))
    if json != "-":
        from nearfar.report import text

        print_result(text.record(subject) if isinstance(subject, Run) else text.sheet(subject))
