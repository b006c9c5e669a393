"""Parts that the verbs of ``nearfar pool`` share: rejected files, and findings as lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearfar.errors import BadInputError, ExitCode

if TYPE_CHECKING:
    from nearfar._native import PoolFacts, PoolFinding

File = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="libpmemobj pool: a single file.", show_default=False),
]

_OTHERS = {
    "log": ("a pool of libpmemlog", "use pmempool info; only `pool shred` accepts it here"),
    "block": ("a pool of libpmemblk", "use pmempool info; only `pool shred` accepts it here"),
    "pool_set": ("a pool set: a list of files", "name a pool that is a single file"),
    "empty": ("an empty file", "name a pool that libpmemobj or nearfar made"),
    "other": ("not a pool", "name a pool that libpmemobj or nearfar made"),
}


def require_pool(facts: PoolFacts, path: Path) -> None:
    """Raise BadInputError unless the file is a libpmemobj pool; a damaged one is accepted."""
    if facts["kind"] in _OTHERS:
        what, next_step = _OTHERS[facts["kind"]]
        raise BadInputError(f"{path} is {what}", next_step)


def finding_lines(findings: Sequence[PoolFinding]) -> list[str]:
    """Return one line per finding: ``damage  lane  at 0x2040  …``."""
    return [
        f"{one['severity']:<6} {one['part']:<10} at {one['offset']:#x}: {one['what']}"
        for one in findings
    ]


def print_plain(lines: Sequence[str]) -> None:
    """Print lines verbatim: a layout's name may contain what rich takes for markup."""
    from rich.text import Text

    from nearfar.report.console import print_result

    print_result(Text("\n".join(lines), no_wrap=True, overflow="ignore"))


def document(facts: Any, path: Path, **numbers: int) -> dict[str, Any]:
    """Return the JSON of a verb; ``numbers``, counted in the file itself, are at the top level."""
    return {
        "file": str(path),
        "size_bytes": facts["size_bytes"],
        **numbers,
        "damage": facts["damage"],
        "notes": facts["notes"],
        "findings": facts["findings"],
        "provenance": dict.fromkeys(("size_bytes", *numbers, "damage", "notes"), "measured"),
    }


def verdict(facts: PoolFacts) -> int:
    """Return exit code 1 if the pool is damaged."""
    return int(ExitCode.VIOLATION if facts["damage"] else ExitCode.OK)
