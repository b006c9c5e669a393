"""Figures of one tier of a run, without the tier: they match those of another tier."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from nearfar.records.numbers import Quantity

#: Conditions that name a tier: of STREAM, one for each array.
_TIERS = frozenset({"tier", "tier_a", "tier_b", "tier_c"})
_PAGES = re.compile(r",pages=(\w+)")


def figures_of(tier: str, figures: Iterable[Quantity]) -> list[Quantity]:
    """Return the figures of a tier, without the conditions that name it and its pages.

    A tier is on 4 KiB pages unless it has ``pages=`` or other pages by default. Figures of two
    names with the same pages are therefore both returned. Those with exactly the name ``tier`` are
    last, so that they replace the others.
    """
    ranked = [(_rank(tier, figure), figure) for figure in figures]
    found = sorted((pair for pair in ranked if pair[0]), key=lambda pair: pair[0])
    return [_without_tier(figure) for _, figure in found]


def tiers_of(figures: Iterable[Quantity]) -> list[str]:
    """Return the tiers of figures, in their order."""
    named = [names.pop() for figure in figures if len(names := _names(figure)) == 1]
    return list(dict.fromkeys(named))


def _rank(tier: str, figure: Quantity) -> int:
    """Return 2 for a figure of exactly this tier, 1 for one of the same pages, else 0."""
    names = _names(figure)
    if names == {tier}:
        return 2
    pages = _PAGES.search(tier)
    if pages is None:
        return int(names == {f"{tier},pages=4k"})
    has_pages = dict(figure.conditions).get("pages") == pages[1]
    return int(has_pages and names == {_PAGES.sub("", tier)})


def _names(figure: Quantity) -> set[str]:
    return {str(value) for key, value in figure.conditions if key in _TIERS}


def _without_tier(figure: Quantity) -> Quantity:
    held = [pair for pair in figure.conditions if pair[0] not in _TIERS | {"pages"}]
    return replace(figure, conditions=tuple(held))
