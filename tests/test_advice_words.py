"""What advice calls sites, and the command that it ends with."""

from __future__ import annotations

import shlex

import pytest

from nearfar.place import labels
from nearfar.place.sites import Frame, Site
from nearfar.records.advice import AdviceResult
from nearfar.report.html.sections.advice import finding, notes
from nearfar.verify.symbols import Call

LOADER = Frame("/lib64/ld-linux-x86-64.so.2", "", 0x20)


def site(*frames: Frame) -> Site:
    return Site(0, "heap", frames, 1, 64, 64, 0, 0, 1.0)


def test_the_loader_names_no_site_of_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = {LOADER.place(): [Call("open_path", "elf/dl-cache.c:538")]}
    monkeypatch.setattr(labels, "inline_calls", lambda _: calls)
    program = Frame("/usr/bin/sort", "", 0x10)
    assert labels.labels_of([site(program, LOADER)]).at == {0: "sort+0x10"}
    assert labels.labels_of([site(LOADER)]).at == {0: "dl-cache.c:538"}


def test_the_command_can_be_pasted_into_a_shell() -> None:
    program = ["sqlite3", ":memory:", ".read table.sql"]
    result = AdviceResult.model_construct(
        program=program,
        plan="an advice/sqlite3.plan",
        limits=[],
        warnings=[],
        fixed_bytes=0,
        fars=[],
        near="dram",
        near_latency_ns=100.0,
        last_cache_bytes=0,
    )
    words = shlex.split(notes(result)[-1])
    assert words[words.index("--plan") + 1] == "an advice/sqlite3.plan"
    assert words[words.index("--") + 1 :][:3] == program


def result(**others: object) -> AdviceResult:
    figures: dict[str, object] = {
        "program": ["goprog"],
        "plan": None,
        "limits": [],
        "warnings": [],
        "fars": [],
        "far": "cxl-asic",
        "near": "dram",
        "near_latency_ns": 100.0,
        "last_cache_bytes": 0,
        "heap_bytes": 32 << 20,
        "fixed_bytes": 15 << 20,
        "near_bytes": 0,
        "unseen_share": 0.0,
        "slowdown_all_far": 1.0,
        "slowdown_plan": 1.0,
        "time_near_s": 1.0,
        "time_all_far_s": 1.0,
        "cpu_near_s": 1.0,
        "provenance": {},
        "intervals": {},
    }
    return AdviceResult.model_construct(**{**figures, **others})  # type: ignore[arg-type]


def test_the_headline_says_what_is_near_by_assumption() -> None:
    for heap_bytes in (0, 32 << 20):
        said = finding(result(heap_bytes=heap_bytes))
        assert "15 MiB of stack, globals and mappings near by assumption" in said
    said = finding(result(near_bytes=8 << 20, slowdown_all_far=1.4))
    assert "with 8 MiB of its 32 MiB heap near by the plan, and 15 MiB of stack" in said


def test_the_headline_promises_no_gain_where_there_is_none() -> None:
    assert "it takes as much." in finding(result(near_bytes=8 << 20))
    assert "it takes as much." not in finding(result(near_bytes=8 << 20, slowdown_all_far=1.4))


def test_the_headline_says_what_was_not_seen_and_how_long_the_program_is_idle() -> None:
    said = finding(result(unseen_share=0.12, cpu_near_s=0.25))
    assert said.startswith("12% of the CPU time was in programs that it started")
    assert "It is off the CPU for 75% of its wall time" in said
    assert "off the CPU" not in finding(result())


def test_the_name_of_a_program_is_written_as_it_is() -> None:
    found = notes(result(warnings=["goprog ended with 1", "the trace was stopped"]))
    assert "goprog ended with 1." in found
    assert "The trace was stopped." in found
