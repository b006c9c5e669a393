"""Which caches stand between a traced program and its memory, out of a host."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.units import parse_size

if TYPE_CHECKING:
    from nearfar.records.profile import Host

#: What is taken where a host does not tell its ways, by level.
_USUAL_WAYS = {"l1": 8, "l2": 16, "llc": 16}
#: Entries and ways of a TLB where a host tells none: those of most server cores of the last decade
#: (64 entries of 4 ways, then 1536 of 12; Intel Optimization Reference Manual, Skylake server).
USUAL_TLB = ((64, 4), (1536, 12))
#: Buffers of more ways, mostly fully associative ones, are modelled with so many: every miss looks
#: them up, and only walks are counted.
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
    """All that the filter models. ``notes`` tells what was assumed."""

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
        """As a trace's header tells them."""
        told = [("l1", str(self.l1)), ("l2", str(self.l2))]
        if self.llc:
            told.append(("llc", str(self.llc)))
        return [*told, ("tlb", ",".join(f"{entries}/{ways}" for entries, ways in self.tlb))]

    def line(self) -> str:
        """All of it in one word, which ``parse_caches`` reads."""
        return ";".join(f"{key}:{value}" for key, value in [*self.fields(), ("cores", self.cores)])


def parse_level(text: str) -> Level:
    """``256KiB/8``: size and ways. Raises BadInputError."""
    size, slash, ways = text.partition("/")
    if not slash or not re.fullmatch(r"[0-9]+", ways):
        raise BadInputError(f"'{text}' is no cache", "write its size and ways: 256KiB/8")
    return Level(parse_size(size), int(ways))


def parse_caches(line: str) -> Caches:
    """What ``Caches.line`` wrote. Raises BadInputError."""
    told = dict(part.partition(":")[::2] for part in line.split(";"))
    try:
        tlb = [tuple(map(int, level.split("/"))) for level in told["tlb"].split(",")]
        return Caches(
            parse_level(told["l1"]), parse_level(told["l2"]),
            parse_level(told["llc"]) if "llc" in told else None, int(told["cores"]),
            tuple((entries, ways) for entries, ways in tlb),
        )  # fmt: skip
    except (KeyError, ValueError):
        raise BadInputError(
            f"'{line}' tells no caches", "make the plan anew with `nearfar advise`"
        ) from None


def caches_of(host: Host, given: dict[str, str | None]) -> Caches:
    """The caches of a host, those that are ``given`` by level in their place.

    ``none`` for the last level leaves it out. Raises BadInputError where a level is missing.
    """
    notes: list[str] = []
    levels: dict[str, Level | None] = {}
    for name, keys in (("l1", ("l1d", "l1")), ("l2", ("l2",)), ("llc", ("l3",))):
        text = given.get(name)
        if text:
            levels[name] = None if name == "llc" and text == "none" else parse_level(text)
        else:
            levels[name] = _level(host, name, keys, notes)
    l1, l2 = levels["l1"], levels["l2"]
    if l1 is None or l2 is None:
        raise BadInputError(
            f"the host {host.name} tells no {'l1' if l1 is None else 'l2'}",
            "give it: --l1 32KiB/8 --l2 1MiB/16",
        )
    cores = host.figures.get("cores")
    return Caches(
        l1, l2, levels["llc"], int(cores.value or 1) if cores else 1, _tlb(host, notes), notes
    )


def _tlb(host: Host, notes: list[str]) -> tuple[tuple[int, int], ...]:
    """Both levels of a host's TLB; what is usual where it tells none."""
    told = []
    for name in ("dtlb", "stlb"):
        entries, ways = (host.figures.get(f"{name}_{key}") for key in ("entries", "ways"))
        if entries and ways and entries.value and ways.value:
            told.append((int(entries.value), min(int(ways.value), _MOST_WAYS)))
    if told:
        return tuple(told)
    notes.append(f"{host.name} does not tell its TLB: {USUAL_TLB[0][0]} and {USUAL_TLB[1][0]} "
                 "entries are assumed")  # fmt: skip
    return USUAL_TLB


def _level(host: Host, name: str, keys: tuple[str, ...], notes: list[str]) -> Level | None:
    for key in keys:
        size = host.figures.get(f"{key}_bytes")
        if size is None or size.value is None:
            continue
        ways = host.figures.get(f"{key}_ways")
        if ways is None or ways.value is None:
            notes.append(f"{host.name} does not tell the ways of {name}: "
                         f"{_USUAL_WAYS[name]} are assumed")  # fmt: skip
            return Level(int(size.value), _USUAL_WAYS[name])
        return Level(int(size.value), int(ways.value))
    return None
