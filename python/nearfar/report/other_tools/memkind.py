"""memkind: a kind for each allocation site, to be written into the program."""

from __future__ import annotations

from collections.abc import Sequence

from nearfar.errors import BadInputError
from nearfar.records.advice import AdviceResult, SiteAdvice
from nearfar.report import advice_words as words
from nearfar.report.other_tools.header import comment, header
from nearfar.units import format_size

_KINDS = {
    "near": "MEMKIND_DEFAULT",
    "far": "MEMKIND_DAX_KMEM",
    "interleaved": "MEMKIND_INTERLEAVE",
}
_EQUAL_PARTS = (
    "MEMKIND_INTERLEAVE has equal parts on all nodes of the machine, not the fractions of the "
    "advice, which `nearfar run --plan` realizes; --whole-sites makes advice without fractions."
)


def lines(result: AdviceResult) -> list[str]:
    """The kind of each site of the heap that holds memory, those that lose most first."""
    placed = [site for site in result.sites if site.verdict in _KINDS and site.size_bytes]
    heap = [site for site in placed if site.kind == "heap"]
    if not heap:
        raise BadInputError(
            "no allocation site of this program can be placed: memkind has nothing to do",
            "place its mappings with `nearfar run --plan`",
        )
    heap.sort(key=lambda site: -site.far_time_s)
    return [
        *header(result),
        *comment(_missing([site for site in placed if site.kind != "heap"])),
        'export MEMKIND_DAX_KMEM_NODES="$far_node"',
        *comment(
            "Call memkind_malloc(KIND, size) and memkind_free(KIND, p) for blocks of these sites."
        ),
        *(comment(_EQUAL_PARTS) if any(s.verdict == "interleaved" for s in heap) else []),
        *map(_line, heap),
    ]


def _missing(others: Sequence[SiteAdvice]) -> str:
    """A note on sites of the answer that memkind cannot place; empty if there are none."""
    if not others:
        return ""
    near = sum(site.size_bytes for site in others if site.verdict == "near")
    far = sum(site.size_bytes for site in others if site.verdict == "far")
    lost = sum(site.stall_share for site in others)
    return (
        "These figures include memory that is not in the list, because memkind places blocks of "
        f"the heap only: mappings and globals, {format_size(near)} near and {format_size(far)} "
        f"far, with {lost:.0%} of the stall time. `nearfar run --plan` places them, too."
    )


def _line(site: SiteAdvice) -> str:
    """Its kind, size and name; of an interleaved one also the fraction that the advice has."""
    wanted = f"  ({words.placing(site)} in the advice)" if site.near_share is not None else ""
    return (
        f"#   {_KINDS[site.verdict]:18}  {format_size(site.size_bytes):>9}  "
        f"{words.site_name(site)}{wanted}"
    )
