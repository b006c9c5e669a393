"""What advice calls sites, and the command that it ends with."""

from __future__ import annotations

import shlex

import pytest

from nearfar.place import labels
from nearfar.place.sites import Frame, Site
from nearfar.records.advice import AdviceResult
from nearfar.report.sections.advice import notes

LOADER = Frame("/lib64/ld-linux-x86-64.so.2", "", 0x20)


def site(*frames: Frame) -> Site:
    return Site(0, "heap", frames, 1, 64, 64, 0, 0, 1.0)


def test_the_loader_names_no_site_of_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "source_lines", lambda _: {LOADER.place(): "elf/dl-cache.c:538"})
    program = Frame("/usr/bin/sort", "", 0x10)
    assert labels.labels_of([site(program, LOADER)]) == {0: "sort+0x10"}
    assert labels.labels_of([site(LOADER)]) == {0: "dl-cache.c:538"}


def test_the_command_can_be_pasted_into_a_shell() -> None:
    program = ["sqlite3", ":memory:", ".read table.sql"]
    result = AdviceResult.model_construct(
        program=program,
        plan="an advice/sqlite3.plan",
        limits=[],
        warnings=[],
        fixed_bytes=0,
        fars=[],
    )
    words = shlex.split(notes(result)[-1])
    assert words[words.index("--plan") + 1] == "an advice/sqlite3.plan"
    assert words[words.index("--") + 1 :][:3] == program
