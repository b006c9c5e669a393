"""``nearfar bench sort``."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.bench import _programs
from nearfar.records.choices import SortAlgorithm

Algorithm = Annotated[
    SortAlgorithm, typer.Option("--algorithm", help="Quicksort, or mergesort with a buffer.")
]


@flags.expand_dataclasses
def sort(
    algorithm: Algorithm = "quick", *, choice: _programs.Choice, shared: flags.Measuring
) -> None:
    """Sort random 32-bit integers, as the Seoul thesis does; --problem-size elements (2^18).

    Every run checks order and content. Arrays come from malloc or from a tier of libhmalloc; the
    runs alternate, each in a fresh process. --trace times nothing: it writes the accesses to the
    arrays that pass the caches of the Seoul thesis, for `nearfar sim`.

    Examples:

        nearfar bench sort --algorithm merge --problem-size 65536 --problem-size 262144

        nearfar bench sort --allocator malloc --allocator hmalloc:near --runs 10

        nearfar bench sort --trace sort.trace --after l1
    """
    _programs.run("bench sort", algorithm, 262144, choice, shared)
