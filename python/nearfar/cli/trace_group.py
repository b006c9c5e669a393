"""``nearfar trace`` records by itself: what names no verb of the group goes to ``record``."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

_RECORD = "record"
#: What no other verb of the group takes.
_RECORDS = frozenset({"-o", "--output", "--"})


class TraceGroup(TyperGroup):
    """``nearfar trace -o T -- PROGRAM`` is ``nearfar trace record -o T -- PROGRAM``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the verb in where it was left out."""
        if args and args[0] not in self.commands and not _RECORDS.isdisjoint(args):
            args = [_RECORD, *args]
        return super().parse_args(ctx, args)
