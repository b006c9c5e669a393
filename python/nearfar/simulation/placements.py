"""Placement of data in a simulation: rules of the command line, policies, and plan files.

    all-near, all-far             all data in one memory: the bounds
    interleave:N:M                N pages near, then M pages far, and so on
    first-touch, memory-mode, clock-dwf, hot-pages
                                  policies of kernels and hardware, with a near memory of
                                  ``near_bytes``
    PLAN                          a plan file of libhmalloc (docs/formats/plan.md)

With all-near, all-far and PLAN, rules place single objects; the first matching rule decides:
``near:object=7``, ``far:site=3``, ``near:page=0x7f0000001``, ``near:address=0x1000-0x3000``.
``site``, ``size`` and ``default`` of a plan are supported. Rules with ``thread``, ``budget`` or
``ratio`` are rejected, because they depend on the time of each allocation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nearfar.errors import BadInputError
from nearfar.plan_files.reader import PlanRule, read_plan
from nearfar.units import PAGE_BYTES

if TYPE_CHECKING:
    from nearfar._native import SimPlan

#: Policies that require the capacity of near memory.
CAPACITY_POLICIES = ("first-touch", "memory-mode", "clock-dwf", "hot-pages")
_ANY = -1  # the core: any object, any site
_MAX_UINT64 = 2**64 - 1
#: Maximum number of an object or a site in a trace.
_MAX_NUMBER = 2**32 - 1


class ObjectRule(NamedTuple):
    """Places the objects of a trace that satisfy all conditions; the order is that of the core."""

    object: int = _ANY
    site: int = _ANY
    frames: Sequence[tuple[str, int]] = ()
    min_bytes: int = 0
    max_bytes: int = _MAX_UINT64
    near: bool = False


@dataclass(frozen=True)
class Placement:
    """A placement: its text, and its parts in the format of the core."""

    name: str
    rule: str = "fixed"
    near_by_default: bool = False
    weights: tuple[int, int] = (1, 1)
    near_bytes: int = 0
    move_cost_ns: float = 2000.0
    objects: list[ObjectRule] = field(default_factory=list)
    ranges: list[tuple[int, int, bool]] = field(default_factory=list)

    def native(self) -> SimPlan:
        """The plan for the core. Raises NativeError for overlapping ranges or a near size of 0."""
        from nearfar import _native

        classes = [0, 1, 2] if self.objects else []
        return _native.SimPlan(
            self.rule,
            self.near_by_default,
            sorted(self.ranges),
            classes,
            *self.weights,
            self.near_bytes,
            self.move_cost_ns,
        )


def parse(text: str, rules: list[str], near_bytes: int) -> Placement:
    """Parse a placement. Raises BadInputError that names the error."""
    base = _base(text, near_bytes)
    if rules and base.rule != "fixed":
        raise BadInputError(
            f"--place {rules[0]} has no effect with --placement {text}",
            "combine rules with all-near, all-far or a plan",
        )
    if near_bytes and text not in CAPACITY_POLICIES:
        raise BadInputError(
            f"--near-size has no effect with --placement {text}",
            f"omit it, or place by {', '.join(CAPACITY_POLICIES)}",
        )
    objects, ranges = list[ObjectRule](), list[tuple[int, int, bool]]()
    for rule in rules:
        _place(rule, objects, ranges)
    return Placement(
        name=" ".join([text, *rules]),
        rule=base.rule,
        near_by_default=base.near_by_default,
        weights=base.weights,
        near_bytes=near_bytes,
        objects=[*objects, *base.objects],
        ranges=ranges,
    )


def _base(text: str, near_bytes: int) -> Placement:
    if text in ("all-near", "all-far"):
        return Placement(text, near_by_default=text == "all-near")
    if text in CAPACITY_POLICIES:
        if not near_bytes:
            raise BadInputError(
                f"--placement {text} requires the size of near memory",
                "give it, such as --near-size 64MiB",
            )
        return Placement(text, rule=text.replace("-", "_"))
    if text.startswith("interleave:"):
        parts = text.split(":")[1:]
        if len(parts) != 2 or not all(p.isdecimal() and 0 < int(p) < 1 << 20 for p in parts):
            raise BadInputError(f"invalid interleave {text}", "write interleave:N:M, such as 3:1")
        return Placement(text, rule="interleave", weights=(int(parts[0]), int(parts[1])))
    return _of_plan(Path(text))


def far_by_site(sites: Iterable[int]) -> list[ObjectRule]:
    """Rules that place the objects of these sites of a trace far."""
    return [ObjectRule(site=site) for site in sites]


def _place(text: str, objects: list[ObjectRule], ranges: list[tuple[int, int, bool]]) -> None:
    tier, _, what = text.partition(":")
    kind, _, value = what.partition("=")
    try:
        near = {"near": True, "far": False}[tier]
        if kind == "address":
            begin, end = (_number(part, _MAX_UINT64) for part in value.split("-"))
            if begin >= end:
                raise ValueError(value)
            ranges.append((begin, end, near))
        elif kind == "page":
            begin = _number(value, _MAX_UINT64 // PAGE_BYTES - 1) * PAGE_BYTES
            ranges.append((begin, begin + PAGE_BYTES, near))
        elif kind in ("object", "site"):
            number = _number(value, _MAX_NUMBER)
            rule = ObjectRule(near=near)
            objects.append(
                rule._replace(object=number) if kind == "object" else rule._replace(site=number)
            )
        else:
            raise ValueError(kind)
    except (KeyError, ValueError):
        raise BadInputError(
            f"--place {text} is not a rule",
            "write near: or far:, then object=N, site=N, page=N or address=BEGIN-END, numbers of "
            "at most 32 bits for objects and sites, 52 for pages and 64 for addresses",
        ) from None


def _number(text: str, most: int) -> int:
    number = int(text, 0)
    if not 0 <= number <= most:
        raise ValueError(text)
    return number


def _of_plan(path: Path) -> Placement:
    """The placement of a plan file. Raises BadInputError with file and line."""
    plan = read_plan(
        path,
        ["far"],
        f"write all-near, all-far, interleave:N:M, {', '.join(CAPACITY_POLICIES)}, or the path of "
        "a plan",
    )
    return Placement(
        str(path),
        near_by_default=_is_near(str(path), plan.default_tier or "near"),
        objects=[_object_rule(f"{path}:{rule.line}", rule) for rule in plan.rules],
    )


def _is_near(where: str, tier: str) -> bool:
    if tier not in ("near", "far"):
        raise BadInputError(
            f"{where}: the simulation has the tiers near and far, not {tier}", "name one of them"
        )
    return tier == "near"


def _object_rule(where: str, rule: PlanRule) -> ObjectRule:
    if refused := sorted(rule.conditions - {"site", "size"}):
        raise BadInputError(
            f"{where}: {refused[0]} cannot be simulated", "remove it, or place by site and size"
        )
    least, most = rule.sizes
    return ObjectRule(
        frames=rule.frames, min_bytes=least, max_bytes=most, near=_is_near(where, rule.tier)
    )
