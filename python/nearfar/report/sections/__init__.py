"""The sections of the report, one file each: a file that is added here is on the page.

Each has ``section(context)``, which gives its section, or None where the record has nothing for it,
and ``PLACE``, a number: the page goes from low to high. Names with an underscore are helpers.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module

from nearfar.report.section import Context, Section

_FILES = [import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)
          if not found.name.startswith("_")]  # fmt: skip

#: In the order of the page.
ORDER: tuple[Callable[[Context], Section | None], ...] = tuple(
    file.section for file in sorted(_FILES, key=lambda file: (file.PLACE, file.__name__))
)
