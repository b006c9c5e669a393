"""The sections of the report: a new module in this folder becomes a section of the page.

Each has ``section(context)``, which returns its section, or None if the record has no data for it,
and ``PLACE``, a number: sections are sorted by it. Modules with a leading underscore are helpers.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module

from nearfar.report.html.section import Context, Section


def in_page_order() -> list[Callable[[Context], Section | None]]:
    """Import all sections; the function of each, in the order of the page."""
    files = [
        import_module(f"{__name__}.{found.name}")
        for found in pkgutil.iter_modules(__path__)
        if not found.name.startswith("_")
    ]
    return [file.section for file in sorted(files, key=lambda file: (file.PLACE, file.__name__))]
