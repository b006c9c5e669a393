"""Allocators by name: which library is preloaded for each, and whether it is there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nearfar.errors import BadInputError, MachineError
from nearfar.measure.beside import BESIDE, ask

GLIBC = "glibc"
#: Those of a run where none is named.
USUAL = (GLIBC, "hmalloc:near", "mimalloc", "jemalloc", "memkind")
EXAMPLES = (
    "glibc, hmalloc:near, hmalloc:TIER, mimalloc, jemalloc, memkind, memkind:pmem:DIR or "
    "preload:LIBRARY"
)


@dataclass(frozen=True)
class Allocator:
    """``name`` is the user's, ``native`` what the test program is told, ``library`` is preloaded;
    ``origin_tier`` is a tier whose figures are of the same origin."""

    name: str
    native: str
    library: str = ""
    origin_tier: str = "dram"


#: Names that libraries go by on the distributions we know, newest first, and their package.
_LIBRARIES = {
    "mimalloc": (("libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so.2.0"), "libmimalloc2.0"),
    "jemalloc": (("libjemalloc.so.2",), "libjemalloc2"),
    "memkind": (("libmemkind.so.0",), "libmemkind0"),
}


def resolve(name: str) -> Allocator:
    """The allocator of a name, its library found and loaded once.

    Raises BadInputError for a name that is none, MachineError where its library is not installed.
    """
    kind, _, rest = name.partition(":")
    if name == GLIBC:
        return Allocator(name, name)
    if kind == "preload" and rest:
        if not Path(rest).is_file():
            raise BadInputError(f"there is no library {rest}", "name the file of a malloc library")
        return _first_that_loads(name, "preload", [str(Path(rest).resolve())])
    if kind == "hmalloc":
        return _hmalloc(name, rest or "near")
    if kind not in _LIBRARIES or (rest and kind != "memkind"):
        raise BadInputError(f"no allocator '{name}' is known", f"use {EXAMPLES}")
    native = f"memkind:{rest or 'default'}" if kind == "memkind" else kind
    return _first_that_loads(name, native, _LIBRARIES[kind][0])


def _hmalloc(name: str, tier: str) -> Allocator:
    """A tier of libhmalloc, which is part of the package; made once, to see that it can be."""
    emulated = tier.startswith("shm:")  # DRAM that stands in for persistent memory
    library = str(BESIDE / "libhmalloc.so")
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
    """A processor that this process may use, for what is not timed."""
    return [min(os.sched_getaffinity(0))]


def test_command(
    native: str, test: str, *, count: int, seed: int, cpus: Sequence[int], settle_s: float
) -> list[str]:
    """The command line of one test in a process; ``native`` is a name of ``find_allocator``."""
    return [
        str(BESIDE / "nearfar-malloc"), test, str(count), str(seed),
        ",".join(map(str, cpus)), str(round(settle_s * 1000)), native,
    ]  # fmt: skip


def run(
    allocator: Allocator, test: str, *, count: int, seed: int, cpus: Sequence[int], settle_s: float
) -> dict[str, str]:
    """One test in a fresh process: the figures it prints, by key.

    Raises what the test program tells, MachineError where it died.
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
            "leave it out, or use a smaller -n",
        )
    return answer.figures


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
