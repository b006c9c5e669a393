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


def sort(
    algorithm: Annotated[
        Algorithm, typer.Option("--algorithm", help="Quicksort, or mergesort with a buffer.")
    ] = Algorithm.QUICK,
    sizes: programs.Sizes = None,
    allocator: programs.AllocatorNames = None,
    trace: programs.TraceFile = None,
    after: programs.After = "l1",
    cpus: options.Cpus = None,
    time: options.Time = None,
    runs: options.Runs = None,
    warmup: options.Warmup = 0,
    seed: options.Seed = 1,
    out: options.Out = None,
    json: options.Json = None,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
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
    work = programs.Work(
        algorithm.value, sizes or [262144], 1, allocator or ["malloc"], trace, after
    )
    shared = programs.Shared(cpus, time, runs, warmup, seed, out, json, strict, quiet)
    programs.run("bench sort", work, shared)
