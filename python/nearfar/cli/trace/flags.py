"""``nearfar trace flags``."""

from __future__ import annotations


def flags() -> None:
    """Print the GCC flags of a program that is traced without the emulator.

    The same flags compile and link; the program also runs without nearfar, untraced.

    Example: `gcc -O2 lbm.c -o lbm $(nearfar trace flags)`
    """
    from nearfar.tracing.recording import instrumentation_flags

    print(instrumentation_flags())
