"""``nearfar bench malloc``."""

from __future__ import annotations

import re
from typing import Annotated

from nearfar.cli import flags
from nearfar.cli.output import show_measured
from nearfar.errors import BadInputError

#: A comma that starts another allocator: a tier contains commas too.
_BEFORE_ALLOCATOR = r",(?=\s*(?:glibc|hmalloc|mimalloc|jemalloc|memkind|preload)\b)"

Tests = Annotated[
    list[str] | None,
    flags.text(
        "--test", "TEST,…", "small, large, free-loop, half-free-loop or warm (default: all)."
    ),
]
Threads = Annotated[
    list[str] | None, flags.text("--threads", "N,…", "Threads (default: 1, and one per CPU).")
]
Allocators = Annotated[
    list[str] | None,
    flags.text(
        "--allocator",
        "NAME,…",
        "glibc, hmalloc:near, hmalloc:TIER, mimalloc, jemalloc, memkind[:kind] or "
        "preload:LIBRARY (default: all that are installed).",
    ),
]
Blocks = Annotated[
    int | None,
    flags.count("--blocks", help="Blocks per round (default: as in the Seoul thesis)."),
]


@flags.expand_dataclasses
def malloc(
    test: Tests = None,
    threads: Threads = None,
    allocator: Allocators = None,
    blocks: Blocks = None,
    *,
    shared: flags.Measuring,
) -> None:
    """Compare allocators with the four malloc tests of the Seoul thesis and a warm loop.

    small: 10^6 blocks of 1-512 B, then all freed. large: 10^6 of 1-524287 B, then all freed.
    free-loop: 10^4 of 1-524287 B all freed, ten rounds. half-free-loop: the same, but each round
    frees the even blocks and the end frees the rest. warm: one of 4096 live blocks of 1-512 B is
    replaced, repeatedly. The tests write the first byte of each block and divide the work among the
    threads. Each test runs in a fresh process, and allocators alternate. Ratios to glibc, which
    always runs, are of adjacent runs. Lists are separated by commas, or repeat the flag.

    Examples:

        nearfar bench malloc

        nearfar bench malloc --test small --threads 1,2,4 --allocator hmalloc:near,mimalloc

        nearfar bench malloc --test free-loop --allocator hmalloc:file:/data --json -
    """
    from nearfar.report.terminal import allocators as allocators_tables
    from nearfar.workflows.bench import malloc as workflow

    done = workflow.measure(
        shared.options,
        tests=_parts(test),
        threads=_numbers(_parts(threads)),
        allocators=_parts(allocator, _BEFORE_ALLOCATOR),
        blocks=blocks,
    )
    show_measured(done, allocators_tables.malloc(done.result), shared.output)


def _parts(values: list[str] | None, comma: str = ",") -> list[str]:
    """Return the values given by commas or by repeating the flag, without duplicates."""
    parts = [part.strip() for value in values or [] for part in re.split(comma, value)]
    return list(dict.fromkeys(parts))


def _numbers(texts: list[str]) -> list[int]:
    for text in texts:
        if not text.isdecimal() or int(text) == 0:
            raise BadInputError(f"invalid number of threads '{text}'", "write it like 1,2,4")
    return [int(text) for text in texts]
