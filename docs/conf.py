"""Sphinx settings. ``make docs`` builds the site and the man pages in ``build/docs``."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import reference_pages  # noqa: E402

from nearfar import __version__  # noqa: E402

project = "nearfar"
author = "the nearfar authors"
copyright = "2026, the nearfar authors"  # noqa: A001
version = release = __version__

extensions = ["myst_parser"]
myst_enable_extensions = ["deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3
exclude_patterns = ["man", "reference/verbs/.gitignore"]
smartquotes = False  # keep "--" of flags
html_theme = "furo"
html_title = "nearfar"
html_copy_source = False
html_show_sphinx = False

_VERBS = reference_pages.write(HERE / "reference" / "verbs")
man_pages = [(f"reference/verbs/{name}", name, line, author, 1) for name, _verb, line in _VERBS]
