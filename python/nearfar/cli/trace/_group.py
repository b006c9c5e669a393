"""``nearfar trace`` without a verb of the group runs ``record``."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

_RECORD = "record"
#: Arguments of which a command line of ``record`` has at least one. ``import`` and ``export`` also
#: have ``--output``, but only after their own name.
_RECORDS = frozenset({"-o", "--output", "--"})


class TraceGroup(TyperGroup):
    """``nearfar trace -o T -- PROGRAM`` is ``nearfar trace record -o T -- PROGRAM``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the verb if it was left out."""
        if args and args[0] not in self.commands and not _RECORDS.isdisjoint(args):
            args = [_RECORD, *args]
        return super().parse_args(ctx, args)
