"""Every command in the documents runs, and prints what they show."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from crashing import needs_libpmem
from documents import Command, follow, read

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if "verbs" not in page.parts
)


MARKS = {
    # It builds the library from nothing.
    "docs/tutorials/persistent-code.md": pytest.mark.long,
    "docs/crash.md": needs_libpmem,
    "docs/pool.md": needs_libpmem,
}


def run_page(page: str, folder: Path) -> None:
    tool = folder / ".bin" / "nearfar"
    tool.parent.mkdir(exist_ok=True)
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m nearfar.cli.main "$@"\n')
    tool.chmod(0o755)
    environment = {"PATH": f"{tool.parent}:{os.environ['PATH']}", "NEARFAR_SOURCE": str(ROOT)}
    document = read(ROOT / page)
    for step in document.steps:
        if not isinstance(step, Command):
            (folder / step[0]).parent.mkdir(parents=True, exist_ok=True)
            (folder / step[0]).write_text(step[1])
            continue
        follow(step, folder, 300, **environment)
    for reason in document.not_run:
        print(f"{page}: a block was not run: {reason}")


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=MARKS.get(page, ())) for page in PAGES if read(ROOT / page).steps],
)
def test_what_a_page_tells_is_so(page: str, tmp_path: Path) -> None:
    run_page(page, tmp_path)


def test_a_page_that_tells_wrong_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```console\n$ nearfar --version\nnearfar 1.2.3\n$ echo a; echo 7 b\n8 b\n```\n"
    )
    run_page(str(page), tmp_path)
    page.write_text("```console\n$ echo near\nfar\n```\n")
    with pytest.raises(AssertionError, match="far"):
        run_page(str(page), tmp_path)
