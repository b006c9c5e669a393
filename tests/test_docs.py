"""Every command in the documents runs, and prints what they show."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from crashing import needs_libpmem
from documents import Command, follow, read
from nearfar.cli.app import app
from tracing import needs_emulator

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if "verbs" not in page.parts
)


MARKS = {
    # It builds the library from nothing.
    "docs/tutorials/persistent-code.md": pytest.mark.long,
    "docs/tutorials/crash.md": needs_libpmem,
    "docs/how-to/persist.md": needs_libpmem,
    "docs/how-to/pool.md": needs_libpmem,
    "docs/how-to/advise.md": needs_emulator,
    "docs/how-to/trace.md": needs_emulator,
}
#: Seconds for a command: one that builds the whole library takes minutes on a slow machine.
_LONGEST = 1800


def run_page(page: str, folder: Path, *, long: bool = True) -> None:
    tool = folder / ".bin" / "nearfar"
    tool.parent.mkdir(exist_ok=True)
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m nearfar.cli.app "$@"\n')
    tool.chmod(0o755)
    # Version managers put a script in front of the interpreter that the pages trace.
    python = tool.parent / "python3"
    python.unlink(missing_ok=True)
    python.symlink_to(Path(sys.executable).resolve())
    environment = {"PATH": f"{tool.parent}:{os.environ['PATH']}", "NEARFAR_SOURCE": str(ROOT)}
    document = read(ROOT / page, long=long)
    for step in document.steps:
        if not isinstance(step, Command):
            (folder / step[0]).parent.mkdir(parents=True, exist_ok=True)
            (folder / step[0]).write_text(step[1])
            continue
        follow(step, folder, _LONGEST, **environment)
    for reason in document.not_run:
        print(f"{page}: a block was not run: {reason}")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=MARKS.get(page, ()))
        for page in PAGES
        if read(ROOT / page, long=False).steps
    ],
)
def test_commands_of_a_page_print_their_output(page: str, tmp_path: Path) -> None:
    run_page(page, tmp_path, long=False)


@pytest.mark.long
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=MARKS.get(page, ())) for page in PAGES if read(ROOT / page).has_long],
)
def test_long_blocks_of_a_page_print_their_output(page: str, tmp_path: Path) -> None:
    run_page(page, tmp_path)


def commands() -> dict[str, Any]:
    """Each verb by its name, groups and what they hold."""
    top = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    below = {
        f"{group} {name}": verb
        for group, command in top.items()
        for name, verb in getattr(command, "commands", {}).items()
    }
    return {**top, **below}


#: A command in running text or in a table: up to what it hands to a program, or what it ends with.
_COMMAND = re.compile(r"`nearfar ([^`]*)`|^ {4}nearfar (.*)$", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_are_only_named_exist(page: str) -> None:
    known = commands()
    wrong = [
        command.strip()
        for command in map("".join, _COMMAND.findall((ROOT / page).read_text()))
        if not exists(command.split(" -- ")[0].split(), known)
    ]
    assert wrong == []


def exists(words: list[str], known: dict[str, Any]) -> bool:
    """Whether a verb begins with these words, and has the flags among them."""
    depth = 2 if " ".join(words[:2]) in known else 1
    verb = known.get(" ".join(words[:depth]))
    if verb is None:
        return words[0].startswith("-")
    below = getattr(verb, "commands", {})
    if below and len(words) > depth and not words[depth].startswith("-"):
        return False
    flags = {"--help"}  # a group may have a verb that it begins without its name
    for one in (verb, *below.values()):
        flags |= {name for parameter in one.params for name in parameter.opts}
    return {word for word in words[depth:] if word.startswith("-")} <= flags


def test_a_command_that_does_not_exist_is_found() -> None:
    known = commands()
    assert exists(["bench", "map", "--op", "get"], known)
    assert not exists(["bench", "maps"], known)
    assert not exists(["bench", "map", "--ops", "get"], known)


def test_a_page_with_a_wrong_output_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```console\n$ nearfar --version\nnearfar 1.2.3\n$ echo a; echo 7 b\n8 b\n```\n"
    )
    run_page(str(page), tmp_path)
    page.write_text("```console\n$ echo near\nfar\n```\n")
    with pytest.raises(AssertionError, match="far"):
        run_page(str(page), tmp_path)


def test_of_one_run_lines_without_quantities_must_be_printed_again(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    command = "printf 'Site  Size\\nmain  1 KiB\\n'"
    block = f"<!-- one run: names differ -->\n```console\n$ {command}\n{{}}```\n"
    page.write_text(block.format("Site  Size\nother  7 KiB\n"))
    run_page(str(page), tmp_path)
    page.write_text(block.format("Site  Time\nmain  1 KiB\n"))
    with pytest.raises(AssertionError, match="Time"):
        run_page(str(page), tmp_path)
