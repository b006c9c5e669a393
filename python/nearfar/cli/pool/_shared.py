"""The argument that the verbs of ``nearfar pool`` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="libpmemobj pool: a single file.", show_default=False),
]
