"""The entry point of the executable: an interrupt while modules are imported ends as any other."""

from __future__ import annotations

import sys

_INTERRUPTED = 130


def main() -> int:
    """Import the command line, and run one verb; the exit code."""
    try:
        from nearfar.cli.app import main as run
    except KeyboardInterrupt:
        print("nearfar: interrupted", file=sys.stderr)
        return _INTERRUPTED
    return run()
