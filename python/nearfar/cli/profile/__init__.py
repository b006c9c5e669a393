"""``nearfar profile``: profiles of memories."""

from __future__ import annotations

import typer

from nearfar.cli.profile import import_

group = typer.Typer(no_args_is_help=True, help="Make profiles of memories.")
group.command("import")(import_.import_)
