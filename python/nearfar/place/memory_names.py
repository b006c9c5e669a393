"""Names of memory without a call chain, for people."""

from __future__ import annotations

from nearfar.place.sites import BlockSizes, Part
from nearfar.units import format_size

#: Begin of the name of memory that has only a size.
ANONYMOUS = "anonymous memory of "


def region_name(selector: str) -> str:
    """Memory that only the kernel names: ``place.regions`` has the selectors."""
    kind, _, size = selector.removeprefix("map=").partition(" size=")
    if kind == "heap":
        return "[heap]"
    if kind == "file:zero":  # MAP_SHARED | MAP_ANONYMOUS, as of PostgreSQL's shared buffers
        return "shared anonymous memory"
    if kind.startswith("file:"):
        return f"mapped file {kind.removeprefix('file:')}"
    if kind.startswith("name:"):
        return f"[anon:{kind.removeprefix('name:')}]"
    least, most = size.split("..")
    if not most:
        return f"{ANONYMOUS}{format_size(int(least))} and more"
    return f"{ANONYMOUS}{format_size(int(least))} to {format_size(int(most) + 1)}"


def part_name(part: Part | None) -> str:
    """To be appended to a name; empty for memory that is not divided."""
    if part is None:
        return ""
    begin, end = part
    if not begin:
        return f", its first {format_size(end or 0)}"
    if not end:
        return f", all after its first {format_size(begin)}"
    return f", its bytes from {format_size(begin)} to {format_size(end)}"


def sizes_name(sizes: BlockSizes | None) -> str:
    """The same for blocks of a range of sizes."""
    if sizes is None:
        return ""
    least, most = sizes
    if most is None:
        return f", blocks of {_exact_size(least)} and more"
    return f", blocks of {_exact_size(least)} to {_exact_size(most)}"


def _exact_size(size: int) -> str:
    return f"{size:,} B" if size % 1024 else format_size(size)
