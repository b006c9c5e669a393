"""Specifications of heap tiers (hmalloc(3)), for parts that do not run inside the program.

The library that does, libhmalloc, reads them in C++ (``native/alloc/tier_options.cpp``); a test
compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nearfar.errors import BadInputError, MachineError, from_native

_MOST_NODES = 64
_LEAST_CAPACITY = 64 << 10
_LARGEST = (1 << 64) - 1
_NUMBER = re.compile("[0-9]{1,4}")
_SIZE = re.compile(r"([0-9]+)(?:\.([0-9]*))?(?:B|([kKMGT])(iB|B)?)?")
TIER_NAME = re.compile(r"[A-Za-z0-9_-]{1,31}")
_NEXT = "hmalloc(3) lists the options of tiers"
_CHOICES = {
    "reserve": ("sparse", "chunk", "full"),
    "fork": ("private", "copy", "deny"),
}


@dataclass(frozen=True)
class TierOptions:
    """``kind``: before the colon; ``nodes``: of ``numa:``, in their order; ``policy``: empty if the
    kernel decides; ``weights``: by node; ``spill_to``: the tier that takes what does not fit."""

    kind: str
    nodes: tuple[int, ...] = ()
    policy: str = ""
    capacity_bytes: int | None = None
    weights: Mapping[int, int] = field(default_factory=dict)
    spill_to: str = ""
    fork: str = "private"


def parse_hmalloc_size(text: str) -> int | None:
    """A size in the syntax of libhmalloc: ``4096``, ``64KiB``, ``2GB``, ``1.5G``. None if it is
    invalid, or too large."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    digits, fraction, letter, unit = match.groups()
    digits = digits.lstrip("0") or "0"
    power = " KMGT".index((letter or " ").upper())
    scale: int = (1000 if unit == "B" else 1024) ** power
    if len(digits) > len(str(_LARGEST)):
        return None
    whole = int(digits)
    if whole // 10 > (_LARGEST - 9) // 10 or whole > _LARGEST // scale - 1:
        return None
    return whole * scale + int(((fraction or "") + "000")[:3]) * scale // 1000


def parse_tier_options(text: str) -> TierOptions:
    """Raises BadInputError for an invalid specification, MachineError for a node that no machine
    has."""
    head, *rest = text.split(",")
    if rest and not rest[-1]:
        rest.pop()  # a final comma
    found = TierOptions(head.partition(":")[0])
    if head.startswith("numa:"):
        found = replace(found, nodes=_nodes(head.removeprefix("numa:")))
        head = head.partition("+")[0]
    plain, weights = [head], None
    for option in rest:
        if option.startswith("weights="):
            weights = option.removeprefix("weights=")
            continue
        changed = _with_option(found, option)
        if changed is None:
            plain.append(option)
        else:
            found = changed
    spec = _parsed(",".join(plain))
    if weights is not None:
        found = replace(found, policy="weighted", weights=_weights(weights, found.nodes))
    return _checked(found, spec)


def _invalid(what: str, value: str, requirement: str) -> BadInputError:
    return BadInputError(f"invalid {what} '{value}': {requirement}", _NEXT)


def _parsed(text: str) -> dict[str, object]:
    """The part that all tiers of nearfar have."""
    from nearfar._native import NativeError, parse_tier

    try:
        return dict(parse_tier(re.sub("[\udc80-\udcff]", "x", text)))  # bytes that are not UTF-8
    except NativeError as error:
        raise from_native(error) from None


def _nodes(text: str) -> tuple[int, ...]:
    found: list[int] = []
    for each in text.split("+"):
        if not _NUMBER.fullmatch(each):
            raise _invalid("nodes", text, "must be NUMA nodes such as 0 or 0+1")
        node = int(each)
        if node >= _MOST_NODES:
            raise MachineError(
                f"this machine has no NUMA node {node}", "`nearfar topo` lists the nodes that exist"
            )
        if node in found:
            raise _invalid("nodes", text, "must name each node once")
        found.append(node)
    return tuple(found)


def _weights(text: str, nodes: tuple[int, ...]) -> dict[int, int]:
    parts = text.split(":")
    if (
        len(parts) != len(nodes)
        or not all(map(_NUMBER.fullmatch, parts))
        or not all(1 <= int(each) <= 255 for each in parts)
    ):
        requirement = "must be a weight from 1 to 255 for each node, such as 5:3"
        raise _invalid("weights", text, requirement)
    return dict(zip(nodes, map(int, parts), strict=True))


def _with_option(found: TierOptions, option: str) -> TierOptions | None:
    """The options with one that only heap tiers have; None if it is another one."""
    key, equals, value = option.partition("=")
    if option in ("bind", "prefer", "weighted"):
        return replace(found, policy=option)
    if not equals:
        return None
    if key in _CHOICES:
        if value not in _CHOICES[key]:
            raise _invalid(key, value, f"must be one of {', '.join(_CHOICES[key])}")
        return replace(found, fork=value) if key == "fork" else found
    if key == "overflow":
        return replace(found, spill_to=_spill_target(value))
    return replace(found, capacity_bytes=_capacity(value)) if key == "capacity" else None


def _spill_target(value: str) -> str:
    if value == "fail":
        return ""
    target = value.removeprefix("spill:")
    if target == value:
        raise _invalid("overflow", value, "must be fail or spill:TIER")
    if not TIER_NAME.fullmatch(target):
        raise _invalid("tier name", target, "must be 1 to 31 letters, digits, - or _")
    return target


def _capacity(value: str) -> int:
    size = parse_hmalloc_size(value)
    if not size:
        raise _invalid("capacity", value, "must be a size such as 64MiB")
    if size < _LEAST_CAPACITY:
        raise _invalid("capacity", value, "must be at least 64KiB")
    return size


def _checked(found: TierOptions, spec: Mapping[str, object]) -> TierOptions:
    """Refuses what does not go together."""
    if found.nodes and not found.policy:
        found = replace(found, policy="prefer" if len(found.nodes) > 1 else "bind")
    if found.policy and not found.nodes:
        raise _invalid("tier", found.kind, "bind, prefer and weighted require numa:")
    if len(found.nodes) > 1 and found.policy == "bind":
        raise _invalid("policy", "bind", "several nodes require prefer or weighted")
    if spec["profile"]:
        raise _invalid("kind", "paced", "paced tiers cannot hold a heap")
    if spec["maps"] == "device" and found.fork == "copy":
        raise _invalid("fork", "copy", "a device cannot be copied: must be private or deny")
    if spec["pages"] in ("2m", "1g"):
        raise _invalid("pages", str(spec["pages"]), "must be thp or 4k")
    return found
