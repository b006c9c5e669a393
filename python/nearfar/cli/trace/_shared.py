"""Flags that the verbs of ``nearfar trace`` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[Path, typer.Argument(metavar="T", help="Trace.", show_default=False)]
Output = Annotated[
    Path, typer.Option("-o", "--output", metavar="T", help="Trace to write; it must not exist.")
]
