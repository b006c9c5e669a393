"""The sections of the report: a new module in this folder becomes a section of the page.

Each has ``section(context)``, which returns its section, or None if the record has no data for it,
and ``PLACE``, a number: sections are sorted by it. Modules with a leading underscore are helpers.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module

from nearfar.report.html.section import Context, Section

_FILES = [
    import_module(f"{__name__}.{found.name}")
    for found in pkgutil.iter_modules(__path__)
    if not found.name.startswith("_")
]

#: In the order of the page.
ORDER: tuple[Callable[[Context], Section | None], ...] = tuple(
    file.section for file in sorted(_FILES, key=lambda file: (file.PLACE, file.__name__))
)
