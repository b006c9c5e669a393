"""``nearfar sim``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import options
from nearfar.errors import BadInputError


class PagePolicy(StrEnum):
    """What becomes of an open row. Counts do not tell which accesses would hit one."""

    CLOSED = "closed"


class WritePolicy(StrEnum):
    """What a program waits for when it writes."""

    BLOCKING = "blocking"
    POSTED = "posted"


def sim(
    counts: Annotated[
        Path, typer.Option("--counts", metavar="FILE.json", help="Reads and writes of both tiers.")
    ],
    near: Annotated[
        str, typer.Option("--near", metavar="PROFILE", help="Device of the near tier.")
    ] = "dram-snu",
    far: Annotated[
        str, typer.Option("--far", metavar="PROFILE", help="Device of the far tier.")
    ] = "pcm-snu-ns",
    page_policy: Annotated[
        PagePolicy, typer.Option("--page-policy", help="Every access finds its row closed.")
    ] = PagePolicy.CLOSED,
    write_policy: Annotated[
        WritePolicy, typer.Option("--write-policy", help="Do writes hold the program?")
    ] = WritePolicy.BLOCKING,
    cpu_time_s: Annotated[
        float,
        typer.Option("--cpu-time-s", metavar="T", min=0, help="Processor time beside the memory."),
    ] = 0.0,
    json: options.Json = None,
) -> None:
    """Time and energy of a program on two memories, from its counts alone.

    FILE.json is {"near": {"reads": N, "writes": N}, "far": {"reads": N, "writes": N}}: accesses of
    a cache line each, one after another, as the Seoul thesis counts them.

    Examples:

        nearfar sim --counts quicksort.json --near dram-snu --far pcm-snu-ns --cpu-time-s 0.02

        nearfar sim --counts quicksort.json --far pcm-snu-cycles --write-policy posted --json -
    """
    from math import isfinite

    from nearfar.cli.predictions import show
    from nearfar.profiles import load_profile
    from nearfar.report import text
    from nearfar.simulate.counts import read_counts, simulate

    if not isfinite(cpu_time_s):
        raise BadInputError("--cpu-time-s is no finite number", "give seconds")
    result = simulate(
        read_counts(counts), load_profile(near), load_profile(far),
        cpu_time_s=cpu_time_s, write_policy=write_policy.value,
    )  # fmt: skip
    if not cpu_time_s:
        result.warnings.append("no --cpu-time-s was given: this is the time of the memory alone")
    show("sim", result, text.counts(result), json)
