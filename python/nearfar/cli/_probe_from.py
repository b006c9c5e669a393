"""``nearfar probe --from``: find the knees of a published latency curve."""

from __future__ import annotations

from pathlib import Path

import typer

from nearfar.errors import BadInputError

#: Flags that go with ``--from``. All others configure a measurement, and ``--from`` runs none.
_TAKEN = frozenset({"from_", "json", "quiet"})


def refuse_other_flags(context: typer.Context) -> None:
    """Raise BadInputError if a flag was given that ``--from`` would ignore."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in _TAKEN and source is not None and source.name == "COMMANDLINE":
            raise BadInputError(
                f"--{name} does not go with --from, which measures nothing",
                f"leave out --{name}, or --from",
            )


def show_knees(path: Path, json: str | None) -> None:
    """Print the knees of the curve in a CSV file, as text and, on request, as JSON."""
    from nearfar.measure.curve_file import examine
    from nearfar.report import terminal
    from nearfar.report.console import print_result, write_json

    result = examine(path)
    if json:
        write_json(json, result.model_dump_json(indent=1, exclude_none=True))
    if json != "-":
        print_result(terminal.published_curve(result))
