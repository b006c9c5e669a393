"""Groups of verbs, and the flag that all of them have in common: ``--csv``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, get_args

import typer

from nearfar.cli import flags
from nearfar.errors import BadInputError
from nearfar.report import console


class Verbs(typer.Typer):
    """A group of verbs. Each that has ``--json`` gets ``--csv``, unless it has its own."""

    def command(self, *names: Any, **settings: Any) -> Callable[[Any], Any]:
        """Register a verb, as Typer does."""
        register = super().command(*names, **settings)
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
