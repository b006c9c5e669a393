"""``nearfar fit``: fit models to measurements."""

from __future__ import annotations

import typer

from nearfar.cli.fit import contention, counters

group = typer.Typer(no_args_is_help=True, help="Fit models to measurements.")
group.command()(contention.contention)
group.command()(counters.counters)
