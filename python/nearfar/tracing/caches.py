"""The caches between a traced program and its memory, from a host."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.units import parse_size

if TYPE_CHECKING:
    from nearfar.records.profile import Host

#: Assumed ways of a host without reported ones, by level.
_USUAL_WAYS = {"l1": 8, "l2": 16, "llc": 16}
#: Assumed entries and ways of an unreported TLB: those of most server cores of the last decade
#: (64 entries of 4 ways, then 1536 of 12; Intel Optimization Reference Manual, Skylake server).
USUAL_TLB = ((64, 4), (1536, 12))
#: Larger associativity, mostly full, is modeled with this many ways: every miss searches them, and
#: only walks are counted.
_MOST_WAYS = 16


@dataclass(frozen=True)
class Level:
    """One cache."""

    size_bytes: int
    ways: int

    def __str__(self) -> str:
        return f"{self.size_bytes}/{self.ways}"


@dataclass
class Caches:
    """All caches of the filter. ``notes`` has the assumptions."""

    l1: Level
    l2: Level
    llc: Level | None
    cores: int
    tlb: tuple[tuple[int, int], ...] = USUAL_TLB
    notes: list[str] = field(default_factory=list)

    @property
    def last(self) -> str:
        """Name of the last level."""
        return "llc" if self.llc else "l2"

    def fields(self) -> list[tuple[str, str]]:
        """The fields of a trace's header."""
        levels = [("l1", str(self.l1)), ("l2", str(self.l2))]
        if self.llc:
            levels.append(("llc", str(self.llc)))
        return [*levels, ("tlb", ",".join(f"{entries}/{ways}" for entries, ways in self.tlb))]

    def line(self) -> str:
        """One word for all caches, which ``parse_caches`` reads."""
        return ";".join(f"{key}:{value}" for key, value in [*self.fields(), ("cores", self.cores)])


def parse_level(text: str) -> Level:
    """Parse ``256KiB/8``: size and ways. Raises BadInputError."""
    size, slash, ways = text.partition("/")
    if not slash or not re.fullmatch(r"[0-9]+", ways):
        raise BadInputError(f"invalid cache '{text}'", "write its size and ways: 256KiB/8")
    return Level(parse_size(size), int(ways))


def parse_caches(line: str) -> Caches:
    """Parse the output of ``Caches.line``. Raises BadInputError."""
    levels = dict(part.partition(":")[::2] for part in line.split(";"))
    try:
        tlb = [tuple(map(int, level.split("/"))) for level in levels["tlb"].split(",")]
        return Caches(
            parse_level(levels["l1"]),
            parse_level(levels["l2"]),
            parse_level(levels["llc"]) if "llc" in levels else None,
            int(levels["cores"]),
            tuple((entries, ways) for entries, ways in tlb),
        )
    except (KeyError, ValueError):
        raise BadInputError(
            f"'{line}' does not specify caches", "make the plan anew with `nearfar advise`"
        ) from None


def caches_of(host: Host, given: dict[str, str | None]) -> Caches:
    """The caches of a host, with the ``given`` ones replaced by level.

    ``none`` removes the last level. Raises BadInputError if a level is missing.
    """
    notes: list[str] = []
    levels: dict[str, Level | None] = {}
    for name, keys in (("l1", ("l1d", "l1")), ("l2", ("l2",)), ("llc", ("l3",))):
        text = given.get(name)
        if text is not None:
            levels[name] = None if name == "llc" and text == "none" else parse_level(text)
        else:
            levels[name] = _level(host, name, keys, notes)
    l1, l2 = levels["l1"], levels["l2"]
    if l1 is None or l2 is None:
        raise BadInputError(
            f"the host {host.name} does not specify {'l1' if l1 is None else 'l2'}",
            "give it: --l1 32KiB/8 --l2 1MiB/16",
        )
    cores = host.figures.get("cores")
    return Caches(
        l1, l2, levels["llc"], int(cores.value or 1) if cores else 1, _tlb(host, notes), notes
    )


def _tlb(host: Host, notes: list[str]) -> tuple[tuple[int, int], ...]:
    """Both levels of a host's TLB; the usual ones if not reported."""
    levels = []
    for name in ("dtlb", "stlb"):
        entries, ways = (host.figures.get(f"{name}_{key}") for key in ("entries", "ways"))
        if entries and ways and entries.value and ways.value:
            levels.append((int(entries.value), min(int(ways.value), _MOST_WAYS)))
    if levels:
        return tuple(levels)
    notes.append(
        f"{host.name} does not report its TLB: {USUAL_TLB[0][0]} and {USUAL_TLB[1][0]} "
        "entries are assumed"
    )
    return USUAL_TLB


def _level(host: Host, name: str, keys: tuple[str, ...], notes: list[str]) -> Level | None:
    for key in keys:
        size = host.figures.get(f"{key}_bytes")
        if size is None or size.value is None:
            continue
        ways = host.figures.get(f"{key}_ways")
        if ways is None or ways.value is None:
            notes.append(
                f"{host.name} does not report the ways of {name}: {_USUAL_WAYS[name]} are assumed"
            )
            return Level(int(size.value), _USUAL_WAYS[name])
        return Level(int(size.value), int(ways.value))
    return None
