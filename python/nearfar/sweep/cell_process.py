"""The process of one cell: runs the verb's command line, and ends with the sweep.

A killed sweep or cluster worker cannot stop its verbs. The kernel does: it sends a process the
signal set by ``prctl(PR_SET_PDEATHSIG)`` when its parent ends.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main(parent: str, *arguments: str) -> None:
    """Run the verb. ``parent`` is the process that started this one."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):  # the parent ended before prctl took effect
        sys.exit(130)
    sys.argv = ["nearfar", *arguments]
    runpy.run_module("nearfar.cli.app", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
