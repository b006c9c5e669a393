"""``nearfar bench sort``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.bench import _programs


class Algorithm(StrEnum):
    """The two algorithms of the Seoul thesis."""

    QUICK = "quick"
    MERGE = "merge"


@flags.grouped
def sort(
    algorithm: Annotated[
        Algorithm, typer.Option("--algorithm", help="Quicksort, or mergesort with a buffer.")
    ] = Algorithm.QUICK,
    *,
    choice: _programs.Choice,
    shared: flags.Measuring,
) -> None:
    """Sort random 32-bit integers, as the Seoul thesis does; -n elements (2^18).

    Every run checks order and content. Arrays come from malloc or from a tier of libhmalloc; the
    runs alternate, each in a fresh process. --trace times nothing: it writes the accesses to the
    arrays that pass the caches of the Seoul thesis, for `nearfar sim`.

    Examples:

        nearfar bench sort --algorithm merge -n 65536 -n 262144

        nearfar bench sort --allocator malloc --allocator hmalloc:near --runs 10

        nearfar bench sort --trace sort.trace --after l1
    """
    _programs.run("bench sort", choice.of(algorithm.value, 262144), shared)
