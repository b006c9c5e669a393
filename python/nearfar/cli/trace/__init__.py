"""``nearfar trace``: record and inspect the memory accesses of a program."""

from __future__ import annotations

import typer

from nearfar.cli.trace import exchange, flags, record, show, stats
from nearfar.cli.trace._group import TraceGroup

group = typer.Typer(
    cls=TraceGroup,
    no_args_is_help=True,
    help="Record the memory accesses of a program: `nearfar trace -o T -- PROGRAM`.",
)
group.command(context_settings={"allow_interspersed_args": False})(record.record)
group.command()(stats.stats)
group.command()(show.show)
group.command("import")(exchange.import_)
group.command()(exchange.export)
group.command()(flags.flags)
