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
_MAX_WAYS = 16
#: A last cache of less than this many second caches has no effect of its own.
MIN_RATIO = 1.5


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
    ends: tuple[Level, ...] = ()  # last levels at the ends of a measured size's range
    given: bool = False  # the last level, by a flag

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


def parse_level(text: str, ways: int | None = None) -> Level:
    """Parse ``256KiB/8``: size and ways, which are optional if known. Raises BadInputError."""
    size, slash, given = text.partition("/")
    if not slash and ways is not None:
        return Level(parse_size(size), ways)
    if not slash or not re.fullmatch(r"[0-9]{1,5}", given):
        raise BadInputError(f"invalid cache '{text}'", "write its size and ways: 256KiB/8")
    return Level(parse_size(size), int(given))


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

    ``none`` removes the last level. A measured last level that is hardly larger than the second is
    left out. Raises BadInputError if a level is missing.
    """
    notes: list[str] = []
    levels: dict[str, Level | None] = {}
    for name, keys in (("l1", ("l1d", "l1")), ("l2", ("l2",)), ("llc", ("l3",))):
        text = given.get(name)
        if text is not None and name == "llc":
            levels[name] = _given_last(host, text)
        elif text is not None:
            levels[name] = parse_level(text)
        else:
            levels[name] = _level(host, name, keys, notes)
    l1, l2 = levels["l1"], levels["l2"]
    if l1 is None or l2 is None:
        raise BadInputError(
            f"the host {host.name} does not specify {'l1' if l1 is None else 'l2'}",
            "give it: --l1 32KiB/8 --l2 1MiB/16",
        )
    is_given = given.get("llc") is not None
    last, ends = (levels["llc"], ()) if is_given else _measured_last(host, levels["llc"], l2)
    cores = host.figures.get("cores")
    return Caches(
        l1,
        l2,
        last,
        int(cores.value or 1) if cores else 1,
        _tlb(host, notes),
        notes,
        ends,
        is_given,
    )


def _measured_last(
    host: Host, last: Level | None, l2: Level
) -> tuple[Level | None, tuple[Level, ...]]:
    """The last level, unless neighbors used all of it, and its sizes at the ends of its range."""
    if last is None:
        return None, ()
    return None if last.size_bytes < MIN_RATIO * l2.size_bytes else last, _ends(host, last, l2)


def _ends(host: Host, last: Level, l2: Level) -> tuple[Level, ...]:
    """Last levels of the sizes at the ends of the measured range, at least the second level's."""
    sizes = {max(int(end), l2.size_bytes) for end in host.figure("l3_bytes").interval()}
    return tuple(Level(size, last.ways) for size in sorted(sizes - {last.size_bytes}))


def _given_last(host: Host, text: str) -> Level | None:
    """The last level as given: ``none``, a size, or size and ways."""
    if text == "none":
        return None
    ways = host.figures.get("l3_ways")
    return parse_level(text, int(ways.value) if ways and ways.value else _USUAL_WAYS["llc"])


def _tlb(host: Host, notes: list[str]) -> tuple[tuple[int, int], ...]:
    """Both levels of a host's TLB; the usual ones if not reported."""
    levels = []
    for name in ("dtlb", "stlb"):
        entries, ways = (host.figures.get(f"{name}_{key}") for key in ("entries", "ways"))
        if entries and ways and entries.value and ways.value:
            levels.append((int(entries.value), min(int(ways.value), _MAX_WAYS)))
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
