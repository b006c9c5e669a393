"""What the verbs of ``nearfar pool`` share: files that are no pools, and findings as lines."""

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
    typer.Argument(metavar="FILE", help="A pool of libpmemobj: one file.", show_default=False),
]

_OTHERS = {
    "log": ("a pool of libpmemlog", "pmempool info looks into it; `pool shred` takes it"),
    "block": ("a pool of libpmemblk", "pmempool info looks into it; `pool shred` takes it"),
    "pool_set": ("a pool set: a list of files", "name a pool that is a single file"),
    "empty": ("an empty file", "name a pool that libpmemobj or nearfar made"),
    "other": ("no pool", "name a pool that libpmemobj or nearfar made"),
}


def require_pool(facts: PoolFacts, path: Path) -> None:
    """Raise BadInputError unless the file is a pool of libpmemobj, be it damaged."""
    if facts["kind"] in _OTHERS:
        what, next_step = _OTHERS[facts["kind"]]
        raise BadInputError(f"{path} is {what}", next_step)


def finding_lines(findings: Sequence[PoolFinding]) -> list[str]:
    """``damage  lane  at 0x2040  …``, one line a finding."""
    return [
        f"{one['severity']:<6} {one['part']:<10} at {one['offset']:#x}: {one['what']}"
        for one in findings
    ]


def print_plain(lines: Sequence[str]) -> None:
    """Print lines as they are: a layout's name may hold what rich takes for markup."""
    from rich.text import Text

    from nearfar.cli.console import print_result

    print_result(Text("\n".join(lines), no_wrap=True, overflow="ignore"))


def document(facts: Any, path: Path, **numbers: int) -> dict[str, Any]:
    """The JSON of a verb: ``numbers`` at the top level, counted in the file itself."""
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
    """Exit code 1 if the pool has damage."""
    return int(ExitCode.VIOLATION if facts["damage"] else ExitCode.OK)
