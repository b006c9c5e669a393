"""``nearfar bench sort``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nearfar.cli import options, programs


class Algorithm(StrEnum):
    """The thesis' two."""

    QUICK = "quick"
    MERGE = "merge"


@options.grouped
def sort(
    algorithm: Annotated[
        Algorithm, typer.Option("--algorithm", help="Quicksort, or mergesort with a buffer.")
    ] = Algorithm.QUICK,
    *,
    choice: programs.Choice,
    shared: options.Measuring,
) -> None:
    """Sort random 32-bit integers, as the Seoul thesis does; -n elements (2^18).

    Every run checks order and content. Arrays come from malloc
    or from a tier of libhmalloc, in turns, each run in a fresh
    process. --trace writes what passes the thesis' caches instead: the arrays' accesses alone, for
    `nearfar sim`.

    Examples:

        nearfar bench sort --algorithm merge -n 65536 -n 262144

        nearfar bench sort --allocator malloc --allocator hmalloc:near --runs 10

        nearfar bench sort --trace sort.trace --after l1
    """
    programs.run("bench sort", choice.of(algorithm.value, 262144), shared)
