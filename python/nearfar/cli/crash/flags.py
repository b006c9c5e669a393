"""``nearfar crash flags``."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.records.choices import BuildStep

Step = Annotated[BuildStep, typer.Argument(show_default=False, help="Build step.")]


def flags(step: Step) -> None:
    """Print the compiler flags of a program for `crash run --recorder instrumented`.

    Compile and link are separate steps: -fsanitize=thread instruments the stores, and the recorder
    replaces the sanitizer's runtime library.

    Examples:

        gcc -O1 $(nearfar crash flags compile) -c journal.c

        gcc journal.o $(nearfar crash flags link) -lpmem -o journal
    """
    from nearfar.verify.recorder import compile_flags, link_flags

    print(compile_flags() if step == "compile" else link_flags())
