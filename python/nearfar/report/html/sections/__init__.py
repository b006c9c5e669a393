"""The sections of the report: a new module in this folder becomes a section of the page.

Each has ``section(context)``, which returns its section, or None if the record has no data for it.
``topics.TOPICS`` has their order. Modules with a leading underscore are helpers.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module

from nearfar.report.html.section import Context, Section


def all_sections() -> list[Callable[[Context], Section | None]]:
    """Import all modules of sections, and return their ``section`` functions by module name."""
    return [
        import_module(f"{__name__}.{found.name}").section
        for found in pkgutil.iter_modules(__path__)
        if not found.name.startswith("_")
    ]
