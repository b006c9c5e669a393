"""Plan files as statements, for parts that do not run inside the program."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearfar.errors import BadInputError
from nearfar.place.plan_reader import PlanRule, read_plan
from nearfar.place.preload import Placement, check, environment

BUILD_ID = "5f0c9ab27d41"


def rules(tmp_path: Path, *lines: str) -> list[PlanRule]:
    file = tmp_path / "p.plan"
    file.write_text("\n".join(["hmalloc-plan 1", *lines]))
    return list(read_plan(file, ["far"]).rules)


def rule(tmp_path: Path, line: str) -> PlanRule:
    (found,) = rules(tmp_path, line)
    return found


def test_rules_that_can_be_seen_from_outside(tmp_path: Path) -> None:
    found = rules(
        tmp_path,
        "# a comment",
        "rule far map=anonymous size=16MiB.. range=0..4096",
        "\trule  near\tmap=heap at=0x55d0a000 # the heap",
        "rule far map=name:table",
        "rule far map=file:shared.data range=1.5K..",
        "rule far globals=name:",
        f"rule far globals={BUILD_ID} size=..2GB",
    )
    assert [one.why_unseen() for one in found] == [""] * 6
    assert [(one.number, one.line) for one in found] == [
        (1, 3),
        (2, 4),
        (3, 5),
        (4, 6),
        (5, 7),
        (6, 8),
    ]
    anonymous, heap, named, file, program, library = found
    assert (anonymous.placed, anonymous.tier) == ("anonymous", "far")
    assert anonymous.sizes[0] == 16 << 20
    assert anonymous.span == (0, 4096)
    assert (heap.placed, heap.tier, heap.address) == ("heap", "near", 0x55D0A000)
    assert heap.text == "rule near map=heap at=0x55d0a000"
    assert (named.placed, named.name) == ("name", "table")
    assert (file.placed, file.name, file.span[0]) == ("file", "shared.data", 1536)
    assert (program.placed, program.name) == ("globals", "name:")
    assert (library.name, library.sizes) == (BUILD_ID, (0, 2 * 10**9))


def test_rules_that_only_the_program_itself_can_apply(tmp_path: Path) -> None:
    frame = f"{BUILD_ID}+0x41a8"
    found = rules(
        tmp_path,
        f"rule far site={frame}",
        "rule far size=64KiB..",
        "rule far",
        f"rule far map={frame}<name:libc.so.6+0x12",
        "rule far map=name:program+0x10",
        "rule far thread=worker* ratio=0.5 budget=1GiB",
        "default far",
        "unwind tables",
    )
    call = "places mappings by the call that made them"
    assert [one.why_unseen() for one in found] == [
        *["places blocks of the heap"] * 3,
        *[call] * 2,
        "places blocks of the heap",
    ]


def test_tiers_of_the_command_line_are_used_instead_of_those_of_the_plan(tmp_path: Path) -> None:
    file = tmp_path / "p.plan"
    file.write_text("hmalloc-plan 1\ntier far numa:1\ntier other numa:2\nrule other map=heap\n")
    assert read_plan(file).tiers == {"far": "numa:1", "other": "numa:2"}
    assert read_plan(file, ["far"]).tiers == {"other": "numa:2"}


#: Statements that are wrong, with the complaint.
WRONG = {
    "rule far map=": "invalid condition 'map='",
    "rule far map=stack": "invalid condition 'map=stack'",
    "rule far map=name:": "invalid condition 'map=name:'",
    f"rule far map=file:{'x' * 64}": "invalid condition 'map=file:xxx",
    "rule far map=heap:x": "invalid condition 'map=heap:x'",
    "rule far globals=abc": "invalid condition 'globals=abc'",
    "rule far map=heap at=4096": "invalid condition 'at=4096'",
    "rule far map=heap at=0x1001": "invalid condition 'at=0x1001'",
    "rule far map=heap at=0x0": "invalid condition 'at=0x0'",
    "rule far map=heap range=8..8": "invalid condition 'range=8..8'",
    "rule far map=heap range=9..8": "invalid condition 'range=9..8'",
    "rule far map=heap size=..": "invalid condition 'size=..'",
    "rule far map=heap size=1X..": "invalid condition 'size=1X..'",
    "rule far size=4kb..": "invalid condition 'size=4kb..'",
    "rule far ratio=2": "invalid condition 'ratio=2'",
    "rule far site=name:x": "invalid condition 'site=name:x'",
    "rule far site=name:x+0x1<": "invalid condition 'site=name:x+0x1<'",
    f"rule far thread={'x' * 16}": "invalid condition 'thread=",
    "rule far budget=8388608T": "invalid condition 'budget=8388608T'",
    "rule far map=heap map=heap": "duplicate condition 'map=heap'",
    "rule far map=heap globals=name:": "duplicate condition 'globals=name:'",
    "rule far size=1.. size=1..": "duplicate condition 'size=1..'",
    "rule far map=heap ratio=0.5": "map= and globals= can have size=, at= and range=, but not",
    "rule far map=heap odd=1": "expected size=, at= or range= with map= or globals=, not 'odd=1'",
    "rule far at=0x1000": "at= and range= require map= or globals=, not 'at=0x1000'",
    "rule far heap": "expected site=, size=, thread=, budget= or ratio=, not 'heap'",
    "rule": "invalid tier name ''",
    "rule elsewhere map=heap": "no such tier 'elsewhere'",
    "tier far": "expected NAME SPECIFICATION of tier 'far'",
    "tier f.r numa:0": "invalid tier name 'f.r'",
    "default": "invalid tier name ''",
    "default near far": "unexpected text after default 'near'",
    "unwind never": "expected tables or frame-pointers, not 'never'",
    "unwind tables twice": "unexpected text after unwind 'tables'",
    "place far": "expected rule, tier, default or unwind, not 'place'",
}
#: Statements that are right.
RIGHT = [
    "rule far map=anonymous size=16MiB.. range=0..4096",
    "rule\tfar  map=heap at=0x55d0a000 size=..2GB range=1.5K.. # the heap",
    "rule far map=name:table",
    "rule far map=file:shared.data size=1.2345..",
    "rule far map=file:x+0x10",
    f"rule far map={BUILD_ID}+0x41a8<name:libc.so.6+0x12",
    "rule far globals=name:",
    f"rule far globals={BUILD_ID}",
    "rule far site=name:+0x1 size=1B..1kiB thread=* budget=0 ratio=.5",
    "rule far ratio=0.",
    "default far",
    "unwind tables",
    "tier other numa:0",
]


@pytest.mark.parametrize("line", WRONG)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(BadInputError) as refused:
        rules(tmp_path, "rule near map=heap", line)
    assert refused.value.what.startswith(f"{tmp_path}/p.plan:3: ")
    assert WRONG[line] in refused.value.what
    assert refused.value.next_step


@pytest.mark.parametrize("line", RIGHT)
def test_what_is_right_is_read(tmp_path: Path, line: str) -> None:
    rules(tmp_path, line)


@pytest.mark.parametrize("line", [*WRONG, *RIGHT])
def test_the_library_in_the_program_reads_the_same(tmp_path: Path, line: str) -> None:
    """The other reader, in C++, accepts the same statements and has the same complaints."""
    file = tmp_path / "p.plan"
    file.write_text(f"hmalloc-plan 1\ntier far numa:0\n{line}\n")
    in_program = complaint(lambda: check(environment(Placement(file, {}), None)))
    here = complaint(lambda: read_plan(file))
    assert bool(in_program) == bool(here)
    assert here in in_program


def complaint(read: Callable[[], object]) -> str:
    """What is refused; empty if nothing is."""
    try:
        read()
    except BadInputError as refused:
        return refused.what
    return ""


def test_what_is_no_plan_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "p.plan"
    for text in ("", "# nothing\n", "hmalloc-plan 2\n", "rule far\nhmalloc-plan 1\n"):
        file.write_text(text)
        with pytest.raises(BadInputError, match="the first line must be 'hmalloc-plan 1', not"):
            read_plan(file)
    file.write_text("hmalloc-plan 1\n" + "\n" * 10_000)
    with pytest.raises(BadInputError, match="at most 10000 lines"):
        read_plan(file)
    with pytest.raises(BadInputError, match="no such plan"):
        read_plan(tmp_path / "absent")


@given(st.text(max_size=60))
def test_any_line_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, line: str) -> None:
    file = tmp_path_factory.getbasetemp() / "any.plan"
    file.write_bytes(b"hmalloc-plan 1\nrule near map=heap " + line.encode(errors="replace"))
    with contextlib.suppress(BadInputError):
        read_plan(file)
