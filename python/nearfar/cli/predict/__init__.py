"""``nearfar predict``: predict performance from measurements.

A new module adds the verbs in its ``VERBS``; modules with a leading underscore are helpers.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from nearfar.cli.verb_group import Verbs

group = Verbs(no_args_is_help=True, help="Predict performance from measurements.")
for found in pkgutil.iter_modules(__path__):
    if not found.name.startswith("_"):
        for verb in import_module(f"{__name__}.{found.name}").VERBS:
            group.command()(verb)
