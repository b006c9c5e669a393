"""``nearfar bench matmul``."""

from __future__ import annotations

from nearfar.cli import options, programs


@options.grouped
def matmul(
    *,
    choice: programs.Choice,
    shared: options.Measuring,
) -> None:
    """Multiply two matrices of doubles by the textbook, -n rows (256).

    Every run checks the product to the bit (Freivalds). Arrays come from malloc
    or from a tier of libhmalloc, in turns, each run in a fresh
    process. --trace writes what passes the thesis' caches instead: the arrays' accesses alone, for
    `nearfar sim`.

    Examples:

        nearfar bench matmul -n 128 -n 512

        nearfar bench matmul --allocator malloc --allocator hmalloc:near --runs 10

        nearfar bench matmul --trace matmul.trace --after l1
    """
    programs.run("bench matmul", choice.of("matmul", 256), shared)
