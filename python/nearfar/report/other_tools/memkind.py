"""memkind: a kind for each allocation site, to be written into the program."""

from __future__ import annotations

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
    """The kind of each site of the heap, those that lose most first."""
    heap = [site for site in result.sites if site.kind == "heap" and site.verdict in _KINDS]
    if not heap:
        raise BadInputError(
            "no allocation site of this program can be placed: memkind has nothing to do",
            "place its mappings with `nearfar run --plan`",
        )
    heap.sort(key=lambda site: -site.far_time_s)
    return [
        *header(result),
        'export MEMKIND_DAX_KMEM_NODES="$far_node"',
        *comment(
            "Call memkind_malloc(KIND, size) and memkind_free(KIND, p) for blocks of these sites."
        ),
        *(comment(_EQUAL_PARTS) if any(s.verdict == "interleaved" for s in heap) else []),
        *map(_line, heap),
    ]


def _line(site: SiteAdvice) -> str:
    """Its kind, size and name; of an interleaved one also the fraction that the advice has."""
    wanted = f"  ({words.verdict(site)} in the advice)" if site.near_share is not None else ""
    return (
        f"#   {_KINDS[site.verdict]:18}  {format_size(site.size_bytes):>9}  "
        f"{words.site_name(site)}{wanted}"
    )
