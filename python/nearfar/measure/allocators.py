"""Allocators by name: the library to preload for each, and whether it is installed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nearfar.errors import BadInputError, MachineError
from nearfar.process.helpers import NATIVE_DIR, ask, preloadable

GLIBC = "glibc"
#: Allocators of a run without explicit names.
USUAL = (GLIBC, "hmalloc:near", "mimalloc", "jemalloc", "memkind")
EXAMPLES = (
    "glibc, hmalloc:near, hmalloc:TIER, mimalloc, jemalloc, memkind, memkind:pmem:DIR or "
    "preload:LIBRARY"
)


@dataclass(frozen=True)
class Allocator:
    """An allocator of a test.

    ``name`` is the name that the user gives, ``native`` the one that is passed to the test program.
    ``library`` is preloaded. ``origin_tier`` is a tier whose figures have the same origin.
    """

    name: str
    native: str
    library: str = ""
    origin_tier: str = "dram"


#: Library names on common distributions, newest first, and their package.
_LIBRARIES = {
    "mimalloc": (("libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so.2.0"), "libmimalloc-dev"),
    "jemalloc": (("libjemalloc.so.2",), "libjemalloc2"),
    "memkind": (("libmemkind.so.0",), "libmemkind0"),
}


def resolve(name: str) -> Allocator:
    """Resolve an allocator by name; its library is searched and loaded once.

    Raises BadInputError for an unknown name, MachineError if its library is not installed.
    """
    kind, _, rest = name.partition(":")
    if name == GLIBC:
        return Allocator(name, name)
    if kind == "preload" and rest:
        if not Path(rest).is_file():
            raise BadInputError(f"no library {rest}", "name the file of a malloc library")
        return _first_that_loads(name, "preload", [str(Path(rest).resolve())])
    if kind == "hmalloc":
        return _hmalloc(name, rest or "near")
    if kind not in _LIBRARIES or (rest and kind != "memkind"):
        raise BadInputError(f"unknown allocator '{name}'", f"use {EXAMPLES}")
    native = f"memkind:{rest or 'default'}" if kind == "memkind" else kind
    return _first_that_loads(name, native, _LIBRARIES[kind][0])


def _hmalloc(name: str, tier: str) -> Allocator:
    """A tier of libhmalloc, which is part of the package; created once to check that it works."""
    emulated = tier.startswith("shm:")  # DRAM that emulates persistent memory
    library = preloadable("libhmalloc.so")
    found = Allocator(name, f"hmalloc:{tier}", library, "shm:" if emulated else "dram")
    run(found, "small", count=1, seed=1, cpus=one_cpu(), settle_s=0.0)
    return found


class NotLoadedError(MachineError):
    """The library of an allocator could not be preloaded."""


def _first_that_loads(name: str, native: str, libraries: Sequence[str]) -> Allocator:
    for library in libraries:
        candidate = Allocator(name, native, library)
        with contextlib.suppress(NotLoadedError):
            run(candidate, "small", count=1, seed=1, cpus=one_cpu(), settle_s=0.0)
            return candidate
    kind = name.partition(":")[0]
    if kind in _LIBRARIES:
        raise MachineError(
            f"{kind} is not installed", f"sudo apt-get install -y {_LIBRARIES[kind][1]}"
        )
    raise BadInputError(f"{libraries[0]} brings no malloc", "name the file of a malloc library")


def one_cpu() -> list[int]:
    """A CPU that this process may use, for work that is not timed."""
    return [min(os.sched_getaffinity(0))]


def test_command(
    native: str, test: str, *, count: int, seed: int, cpus: Sequence[int], settle_s: float
) -> list[str]:
    """The command line of one test; ``native`` is a name of ``find_allocator``."""
    return [
        str(NATIVE_DIR / "nearfar-malloc"),
        test,
        str(count),
        str(seed),
        ",".join(map(str, cpus)),
        str(round(settle_s * 1000)),
        native,
    ]


def run(
    allocator: Allocator, test: str, *, count: int, seed: int, cpus: Sequence[int], settle_s: float
) -> dict[str, str]:
    """Run one test in a fresh process; returns the figures it prints, by key.

    Raises the error that the test program reports, MachineError if it died.
    """
    command = test_command(
        allocator.native, test, count=count, seed=seed, cpus=cpus, settle_s=settle_s
    )
    answer = ask(command, allocator.library)
    if refusal := answer.refusal:
        if refusal.code == "not_found":
            raise NotLoadedError(refusal.what, refusal.next_step)
        raise refusal.error(f"{allocator.name}: ")
    if answer.died:
        raise MachineError(
            f"{allocator.name} died at the test {test} ({_ending(answer.code)}): "
            f"{answer.complaint}",
            "leave it out, or use a smaller --blocks",
        )
    return answer.figures


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
