"""Groups of verbs, and what all of them have in common: ``--csv``, and one value for each flag."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, get_args

import typer
from typer.core import TyperCommand, TyperOption

from nearfar.cli import flags
from nearfar.errors import BadInputError
from nearfar.report import console


class OneValueCommand(TyperCommand):
    """A verb that refuses a repeated flag unless the flag may have several values: Click would
    ignore all values but the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments of the verb."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for flag in given:
            takes_one = isinstance(flag, TyperOption) and not (flag.multiple or flag.is_flag)
            if takes_one and given.count(flag) > 1:
                ctx.fail(f"{flag.opts[0]} has one value, and was given {given.count(flag)} times")
        return super().parse_args(ctx, args)


class Verbs(typer.Typer):
    """A group of verbs. Each that has ``--json`` gets ``--csv``, unless it has its own."""

    def command(self, *names: Any, **settings: Any) -> Callable[[Any], Any]:
        """Register a verb, as Typer does."""
        register = super().command(*names, cls=OneValueCommand, **settings)
        return lambda verb: register(_with_csv(verb))


def _with_csv(verb: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(verb, eval_str=True)
    parameters = dict(signature.parameters)
    if "json" not in parameters or "csv" in parameters:
        return verb
    json = parameters["json"]
    annotation = flags.under(flags.Csv, get_args(json.annotation)[1].rich_help_panel)
    csv = json.replace(name="csv", annotation=annotation)
    ordered = [each for p in parameters.values() for each in ([p, csv] if p is json else [p])]

    @wraps(verb)
    def with_csv(csv: str | None = None, **given: Any) -> Any:
        if csv == given.get("json") == "-":
            raise BadInputError(
                "--json and --csv cannot both write to standard output",
                "name a file for one of them",
            )
        if csv is not None:
            console.request_csv(csv)
        return verb(**given)

    with_csv.__signature__ = signature.replace(parameters=ordered)  # type: ignore[attr-defined]
    with_csv.__annotations__ = {p.name: p.annotation for p in ordered}
    return with_csv
