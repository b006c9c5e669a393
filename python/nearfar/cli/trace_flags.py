"""``nearfar trace flags``."""

from __future__ import annotations


def flags() -> None:
    """Print what GCC wants to make a program that is traced without the emulator.

    The same flags compile and link; the program runs without nearfar too, untraced.

    Example: `gcc -O2 lbm.c -o lbm $(nearfar trace flags)`
    """
    from nearfar.trace.recording import instrumentation_flags

    print(instrumentation_flags())
