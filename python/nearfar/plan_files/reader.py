"""Plan files as statements (docs/formats/plan.md), for parts that do not run inside the program.

The library that does, libhmalloc, has a reader of its own in C++; messages have the same form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from nearfar.errors import BadInputError, MachineError, NearfarError
from nearfar.files import read_text_bytes, require_file
from nearfar.plan_files.tier_options import TIER_NAME, parse_hmalloc_size, parse_tier_options
from nearfar.units import PAGE_BYTES

_HEAD = "hmalloc-plan 1"
_MAX_LINES = 10_000
_MAX_FRAMES = 16
_MAX_BUDGETS = 100
_LONGEST_NAME = 63
_LONGEST_SPECIFICATION = 511
_MAX_TIERS = 8
_MAPPED = ("map=", "globals=")
#: An encoding with one character for each byte.
_BYTES = "latin-1"
_NEXT = "see docs/formats/plan.md"
_BUILD_ID = r"(?:[0-9a-f]{2}){4,32}"
_FRAME = re.compile(rf"(?:name:.{{0,63}}|{_BUILD_ID})\+0x[0-9a-f]{{1,16}}")
_OBJECT = re.compile(rf"name:.{{0,63}}|{_BUILD_ID}")
_ADDRESS = re.compile(r"0x([0-9a-f]{1,16})")
_RATIO = re.compile(r"(?=.{1,11}$)(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
#: Larger than any size.
_NO_LIMIT = (1 << 64) - 1

#: Memory that a rule places: blocks of the heap, or mappings by kind.
Placed = Literal["block", "call", "anonymous", "heap", "name", "file", "globals"]


@dataclass(frozen=True)
class PlanRule:
    """One rule. ``number`` counts rules from 1; ``text`` is its line.

    ``conditions``: keywords of the rule. ``frames``: object and offset of each frame of a call
    site. ``name``: of a named mapping, a file, or the object of globals. ``sizes``: least and most
    bytes. ``address``: where the mapping begins. ``span``: bytes from its beginning, the end
    excluded.
    """

    number: int
    line: int
    text: str
    tier: str
    placed: Placed = "block"
    conditions: frozenset[str] = frozenset()
    frames: tuple[tuple[str, int], ...] = ()
    name: str = ""
    sizes: tuple[int, int] = (0, _NO_LIMIT)
    address: int | None = None
    span: tuple[int, int] = (0, _NO_LIMIT)

    def why_unseen(self) -> str:
        """Why the rule cannot be applied from outside the program; empty if it can."""
        if self.placed == "block":
            return "places blocks of the heap"
        return "places mappings by the call that made them" if self.placed == "call" else ""


@dataclass(frozen=True)
class PlanFile:
    """A plan: its rules in order, and its tiers by name, without those of the command line.

    ``default_tier``: of blocks that match no rule; None if the plan does not specify it.
    """

    path: Path
    rules: tuple[PlanRule, ...]
    tiers: dict[str, str]
    default_tier: str | None = None


_WRITTEN_BY = "`nearfar advise -- PROGRAM` writes one; see docs/how-to/hmalloc.md"


def read_plan(path: Path, tiers: Iterable[str] = (), if_absent: str = _WRITTEN_BY) -> PlanFile:
    """Read a plan. ``tiers``: names that exist before it is read, besides ``near``.

    Raises BadInputError with file and line. ``if_absent``: next step if there is no such file.
    """
    require_file(path, "plan", if_absent)
    data = read_text_bytes(path, "name a readable plan file")
    if b"\0" in data:
        raise BadInputError(f"cannot read {path}: it is a binary file", _NEXT)
    return _Reader(path, {"near", *tiers}).read(data.decode(_BYTES))


def _shown(text: str) -> str:
    """A part of a plan, which is read as bytes: names of files may be in any encoding."""
    return text.encode(_BYTES).decode(errors="replace")


class _Reader:
    def __init__(self, path: Path, tiers: set[str]) -> None:
        self._path = path
        self._given = tiers
        self._tiers: dict[str, str] = {}
        self._rules: list[PlanRule] = []
        self._default_tier: str | None = None
        self._line = 0
        self._budgets = 0

    def read(self, text: str) -> PlanFile:
        lines = text.split("\n")
        count = len(lines) - (not lines[-1])
        if count > _MAX_LINES:
            raise BadInputError(
                f"{self._path}: a plan has at most {_MAX_LINES} lines, and this one has {count}",
                _NEXT,
            )
        begun = False
        for line in lines:
            self._line += 1
            words = _words(line)
            if not words:
                continue
            if begun:
                self._statement(words)
            elif line.split("#", 1)[0].rstrip(" \t\r") == _HEAD:
                begun = True
            else:
                raise self._no_head(line)
        if not begun:
            raise self._no_head("")
        return PlanFile(self._path, tuple(self._rules), self._tiers, self._default_tier)

    def _no_head(self, line: str) -> BadInputError:
        return self._refused(f"the first line must be '{_HEAD}', not", line)

    def _refused(self, complaint: str, part: str, next_step: str = _NEXT) -> BadInputError:
        shown = _shown(part[:80])
        return BadInputError(f"{self._path}:{self._line}: {complaint} '{shown}'", next_step)

    def _statement(self, words: list[str]) -> None:
        match words:
            case ["rule", *rest]:
                self._rules.append(self._rule(rest, _shown(" ".join(words))))
            case ["tier", *rest]:
                self._tier(rest)
            case ["default", _, _, *_] | ["unwind", "tables" | "frame-pointers", _, *_]:
                raise self._refused(f"unexpected text after {words[0]}", words[1])
            case ["default", *rest]:
                self._default_tier = self._known(rest)
            case ["unwind", "tables" | "frame-pointers"]:
                pass
            case ["unwind", *rest]:
                raise self._refused("expected tables or frame-pointers, not", "".join(rest[:1]))
            case _:
                raise self._refused("expected rule, tier, default or unwind, not", words[0])

    def _tier(self, words: list[str]) -> None:
        if not words or not TIER_NAME.fullmatch(words[0]):
            raise self._refused("invalid tier name", words[0] if words else "")
        if len(words) != 2 or len(words[1]) > _LONGEST_SPECIFICATION:
            raise self._refused("expected NAME SPECIFICATION of tier", words[0])
        name, specification = words
        if name in self._given:
            return
        try:
            self._check_tier(name, _named(specification))
        except NearfarError as error:
            what = f"{self._path}:{self._line}: {error.what}"
            raise type(error)(what, error.next_step) from None
        self._tiers[name] = _named(specification)
        self._given.add(name)

    def _check_tier(self, name: str, specification: str) -> None:
        target = parse_tier_options(specification).spill_to
        # libhmalloc uses two of its tier numbers for near and far.
        if name != "far" and len(self._given - {"near", "far"}) >= _MAX_TIERS - 2:
            raise MachineError(f"all {_MAX_TIERS} tiers exist already", "use one of them")
        if target and (target == name or target not in self._given):
            raise BadInputError(
                f"invalid overflow=spill:{target} of tier {name}: no other tier has this name",
                "use near, far or the name of an existing tier",
            )

    def _known(self, words: list[str]) -> str:
        """The tier that the words begin with."""
        tier = words[0] if words else ""
        if not TIER_NAME.fullmatch(tier):
            raise self._refused("invalid tier name", tier)
        if tier not in self._given:
            raise self._refused(
                "no such tier", tier, f"name it: --tier {tier}=TIER, such as {tier}=numa:1"
            )
        return tier

    def _rule(self, words: list[str], text: str) -> PlanRule:
        rule = PlanRule(len(self._rules) + 1, self._line, text, self._known(words))
        is_mapping = any(word.startswith(_MAPPED) for word in words[1:])
        seen: set[str] = set()
        for word in words[1:]:
            kind, equals, value = word.partition("=")
            read = (_OF_MAPPINGS if is_mapping else _OF_BLOCKS).get(kind) if equals else None
            if read is None:
                raise self._refused(_expected(kind + equals, is_mapping=is_mapping), word)
            kind = "map" if kind == "globals" else kind
            if kind in seen:
                raise self._refused("duplicate condition", word)
            seen.add(kind)
            changed = read(rule, value)
            if changed is None or (kind == "budget" and self._budgets == _MAX_BUDGETS):
                raise self._refused("invalid condition", word)
            self._budgets += kind == "budget"
            rule = changed
        return replace(rule, conditions=frozenset(seen))


def _expected(kind: str, *, is_mapping: bool) -> str:
    """Message with the conditions that the rule can have, in place of one that it cannot have."""
    if is_mapping and kind.removesuffix("=") in _OF_BLOCKS and kind.endswith("="):
        return "map= and globals= can have size=, at= and range=, but not"
    if is_mapping:
        return "expected size=, at= or range= with map= or globals=, not"
    if kind in ("at=", "range="):
        return "at= and range= require map= or globals=, not"
    return "expected site=, size=, thread=, budget= or ratio=, not"


def _words(line: str) -> list[str]:
    return [word for word in re.split("[ \t]+", line.split("#", 1)[0].rstrip(" \t\r")) if word]


def _named(text: str) -> str:
    """A name as the other parts of nearfar have it."""
    return text.encode(_BYTES).decode(errors="surrogateescape")


def _bounds(text: str) -> tuple[int, int] | None:
    low, dots, high = text.partition("..")
    if not dots or not (low or high):
        return None
    least = parse_hmalloc_size(low) if low else 0
    most = parse_hmalloc_size(high) if high else _NO_LIMIT
    return (least, most) if least is not None and most is not None and least <= most else None


def _frames(text: str) -> tuple[tuple[str, int], ...] | None:
    """Object and offset of each frame of a call site, innermost first; None if one is invalid."""
    frames = text.split("<")
    if len(frames) > _MAX_FRAMES or not all(map(_FRAME.fullmatch, frames)):
        return None
    parts = [frame.rpartition("+") for frame in frames]
    return tuple((_shown(found), int(offset, 16)) for found, _, offset in parts)


def _with_map(rule: PlanRule, value: str) -> PlanRule | None:
    kind, _, name = value.partition(":")
    if frames := _frames(value):  # also name:FILE+0xOFFSET, of an object without a build ID
        return replace(rule, placed="call", frames=frames)
    match kind:
        case "anonymous" | "heap" if kind == value:
            return replace(rule, placed=kind)
        case "name" | "file" if 0 < len(name) <= _LONGEST_NAME:
            return replace(rule, placed=kind, name=_named(name))
    return None


def _with_globals(rule: PlanRule, value: str) -> PlanRule | None:
    if not _OBJECT.fullmatch(value):
        return None
    return replace(rule, placed="globals", name=_named(value))


def _with_site(rule: PlanRule, value: str) -> PlanRule | None:
    frames = _frames(value)
    return replace(rule, frames=frames) if frames else None


def _with_sizes(rule: PlanRule, value: str) -> PlanRule | None:
    sizes = _bounds(value)
    return replace(rule, sizes=sizes) if sizes else None


def _with_address(rule: PlanRule, value: str) -> PlanRule | None:
    match = _ADDRESS.fullmatch(value)
    address = int(match[1], 16) if match else 0
    return replace(rule, address=address) if address and address % PAGE_BYTES == 0 else None


def _with_span(rule: PlanRule, value: str) -> PlanRule | None:
    span = _bounds(value)
    return replace(rule, span=span) if span and span[0] < span[1] else None


def _if_valid(is_valid: Callable[[str], bool]) -> Callable[[PlanRule, str], PlanRule | None]:
    """A condition that is read and has no effect here."""
    return lambda rule, value: rule if is_valid(value) else None


_OF_MAPPINGS = {
    "map": _with_map,
    "globals": _with_globals,
    "size": _with_sizes,
    "at": _with_address,
    "range": _with_span,
}
_OF_BLOCKS = {
    "site": _with_site,
    "size": _with_sizes,
    "thread": _if_valid(lambda value: 0 < len(value) < 16),
    "budget": _if_valid(
        lambda value: (size := parse_hmalloc_size(value)) is not None and size < 1 << 63
    ),
    "ratio": _if_valid(lambda value: bool(_RATIO.fullmatch(value)) and float(value) <= 1),
}
