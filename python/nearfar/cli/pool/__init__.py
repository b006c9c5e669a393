"""``nearfar pool``: inspect libpmemobj pools without opening them."""

from __future__ import annotations

from nearfar.cli.pool import check, info, leaks, shred
from nearfar.cli.verb_group import Verbs

group = Verbs(no_args_is_help=True, help="Inspect libpmemobj pools without opening them.")
group.command()(info.info)
group.command()(check.check)
group.command()(leaks.leaks)
group.command()(shred.shred)
