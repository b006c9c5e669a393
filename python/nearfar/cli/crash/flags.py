"""``nearfar crash flags``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Step(StrEnum):
    """The build step that the flags are for."""

    COMPILE = "compile"
    LINK = "link"


def flags(
    step: Annotated[Step, typer.Argument(show_default=False, help="Build step.")],
) -> None:
    """Print the compiler flags of a program for `crash run --recorder instrumented`.

    Compile and link are separate steps: -fsanitize=thread instruments the stores, and the recorder
    replaces the sanitizer's runtime library.

    Examples:

        gcc -O1 $(nearfar crash flags compile) -c journal.c

        gcc journal.o $(nearfar crash flags link) -lpmem -o journal
    """
    from nearfar.verify.recorder import compile_flags, link_flags

    print(compile_flags() if step is Step.COMPILE else link_flags())
