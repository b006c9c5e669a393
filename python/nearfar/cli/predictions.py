"""What all verbs that compute do with their result: warnings on stderr, JSON or text on stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nearfar.records.shape import Answer


def show(
    verb: str,
    result: Answer,
    shown: RenderableType,
    json_target: str | None,
    *,
    quiet: bool = False,
) -> None:
    """Print a result as text, or as JSON where asked; its warnings unless ``quiet``."""
    import json

    from nearfar import __version__
    from nearfar.cli.console import note, print_result, write_json

    for warning in () if quiet else result.warnings:
        note(warning)
    if json_target:
        document = {
            **result.model_dump(mode="json", exclude_none=True),
            "verb": verb,
            "nearfar_version": __version__,
        }
        write_json(json_target, json.dumps(document, indent=1))
    if json_target != "-":
        print_result(shown)
