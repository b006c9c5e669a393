"""``nearfar probe --from``: knees of a curve that others measured."""

from __future__ import annotations

from pathlib import Path

import typer

from nearfar.errors import BadInputError

#: Flags that go with ``--from``; all others steer a measurement, and nothing is measured.
_TAKEN = frozenset({"from_", "json", "quiet"})


def refuse_other_flags(context: typer.Context) -> None:
    """Raise BadInputError where a flag was given that would be ignored."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in _TAKEN and source is not None and source.name == "COMMANDLINE":
            raise BadInputError(
                f"--{name} does not go with --from, which measures nothing",
                f"leave out --{name}, or --from",
            )


def show_knees(path: Path, json: str | None) -> None:
    """Print what the curve in a CSV file betrays, as text and as JSON where asked."""
    from nearfar.cli.console import print_result, write_json
    from nearfar.measure.curve_file import examine
    from nearfar.report import text

    result = examine(path)
    if json:
        write_json(json, result.model_dump_json(indent=1, exclude_none=True))
    if json != "-":
        print_result(text.published_curve(result))
