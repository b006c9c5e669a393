"""``nearfar trace``: record and inspect the memory accesses of a program."""

from __future__ import annotations

from nearfar.cli.trace import export, flags, import_, record, show, stats
from nearfar.cli.trace._group import TraceGroup
from nearfar.cli.verb_group import Verbs

group = Verbs(
    cls=TraceGroup,
    no_args_is_help=True,
    help="Record the memory accesses of a program: `nearfar trace -o T -- PROGRAM`.",
)
group.command(context_settings={"allow_interspersed_args": False})(record.record)
group.command()(stats.stats)
group.command()(show.show)
group.command("import")(import_.import_)
group.command()(export.export)
group.command()(flags.flags)
