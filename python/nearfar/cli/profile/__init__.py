"""``nearfar profile``: profiles of memories."""

from __future__ import annotations

import typer

from nearfar.cli.profile import import_, list_

group = typer.Typer(no_args_is_help=True, help="List profiles of memories, or make them.")
group.command("list")(list_.list_)
group.command("import")(import_.import_)
