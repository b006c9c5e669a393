"""``nearfar fit``: fit models to measurements."""

from __future__ import annotations

from nearfar.cli.fit import contention, counters
from nearfar.cli.verb_group import Verbs

group = Verbs(no_args_is_help=True, help="Fit models to measurements.")
group.command()(contention.contention)
group.command()(counters.counters)
