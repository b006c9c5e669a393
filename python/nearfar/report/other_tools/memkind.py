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
    "interleaved": "MEMKIND_INTERLEAVE",  # page by page over all nodes, in equal parts
}


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
        *map(_line, heap),
    ]


def _line(site: SiteAdvice) -> str:
    return (
        f"#   {_KINDS[site.verdict]:16}  {format_size(site.size_bytes):>9}  {words.site_name(site)}"
    )
