"""``nearfar crash replay``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.crash import _shared

Image = Annotated[Path, typer.Argument(metavar="IMAGE", help="A failing image that was kept.")]


def replay(image: Image, json: flags.Json = None) -> int:
    """Run recovery and its check again on a failing image.

    Exits with 1 if the image fails again, and with 0 if it passes.

    Examples:

        nearfar crash replay nearfar-crash-1/1.image
    """
    from nearfar.report.terminal.crash import replayed
    from nearfar.verify import sarif as sarif_documents
    from nearfar.workflows import crash_exploration

    done = crash_exploration.replay(image, flags.progress_of(True))
    return _shared.show(done, replayed, sarif_documents.exploration, json)
