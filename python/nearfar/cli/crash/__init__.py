"""``nearfar crash``: check what a power cut can leave in persistent memory."""

from __future__ import annotations

from nearfar.cli.crash import check, flags, lint, replay, run
from nearfar.cli.verb_group import Verbs

group = Verbs(no_args_is_help=True, help="Check what a power cut can leave in a pool.")
group.command()(check.check)
group.command()(run.run)
group.command()(lint.lint)
group.command()(replay.replay)
group.command()(flags.flags)
