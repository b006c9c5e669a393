"""Output of verbs that compute: warnings on stderr, JSON or text on stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nearfar.records.figures import Answer


def show(
    verb: str,
    result: Answer,
    shown: RenderableType,
    json_target: str | None,
) -> None:
    """Print a result as text or, on request, as JSON, and its warnings on standard error.

    Warnings are part of the result: ``--quiet`` does not suppress them.
    """
    import json

    from nearfar import __version__
    from nearfar.report import console

    for warning in result.warnings:
        console.note(warning)
    document = {
        **result.model_dump(mode="json", exclude_none=True),
        "verb": verb,
        "nearfar_version": __version__,
    }
    console.show(shown, json.dumps(document, indent=1), json_target)
