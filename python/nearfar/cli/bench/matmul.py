"""``nearfar bench matmul``."""

from __future__ import annotations

from nearfar.cli import flags
from nearfar.cli.bench import _programs


@flags.expand_dataclasses
def matmul(
    *,
    choice: _programs.Choice,
    shared: flags.Measuring,
) -> None:
    """Multiply two matrices of doubles by the textbook algorithm; --problem-size rows (256).

    Every run verifies the product exactly (Freivalds). Arrays come from malloc or from a tier of
    libhmalloc; the runs alternate, each in a fresh process. --trace times nothing: it writes the
    accesses to the arrays that pass the caches of the Seoul thesis, for `nearfar sim`.

    Examples:

        nearfar bench matmul --problem-size 128 --problem-size 512

        nearfar bench matmul --allocator malloc --allocator hmalloc:near --runs 10

        nearfar bench matmul --trace matmul.trace --after l1
    """
    _programs.run("bench matmul", "matmul", 256, choice, shared)
