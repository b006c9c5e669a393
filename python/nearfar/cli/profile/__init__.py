"""``nearfar profile``: profiles of memories."""

from __future__ import annotations

from nearfar.cli.profile import export, import_, link, list_
from nearfar.cli.verb_group import Verbs

group = Verbs(no_args_is_help=True, help="List profiles of memories, make or export them.")
group.command("list")(list_.list_)
group.command("import")(import_.import_)
group.command("link")(link.link)
group.command("export")(export.export)
