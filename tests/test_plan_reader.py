"""Plan files as statements, for parts that do not run inside the program."""

from __future__ import annotations

import contextlib
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmalloc_build import PRELOAD, clean_environment
from nearfar.errors import BadInputError, NearfarError
from nearfar.place.preload import Placement, check, environment
from nearfar.plan_files.reader import PlanRule, read_plan

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
    """The message of a refusal; empty if nothing is refused."""
    try:
        read()
    except BadInputError as refused:
        return refused.what
    return ""


#: Parts of random statements: what may come first, and what may follow.
TIERS = ["near", "far", "other", "a-b_9", "x" * 31, "x" * 32, "f.r", ""]
HEADS = ["dram", "numa:0", "numa:00", "numa:0+0", "numa:", "numa:0+", "numa:99", "numa:12345"]
HEADS += ["numa:x", "numa", "nothing", "dram:0", "file:", "paced:dram@cxl-asic", ""]
SIZES = [
    "",
    "0",
    "1",
    "4096",
    "4KiB",
    "4kB",
    "64KiB",
    "1.5K",
    "1.",
    ".5",
    "2GB",
    "1TiB",
    "16777215T",
]
SIZES += [
    "16777214T",
    "16777216T",
    "18446744073709551609",
    "18446744073709551610",
    "1kib",
    "9" * 5000,
]
SIZES += ["18446744073709551615", "0" * 5000 + "7", "8EiB", "-1", "+1", "1e3", "\u0661", "1 "]
LARGE = {"1TiB", "16777214T", "18446744073709551609"}
OPTIONS = ["bind", "prefer", "pages=thp", "pages=2m", "pages=", "odd", "", "Bind", "fork=never"]
OPTIONS += ["overflow=fail", "overflow=spill:near", "overflow=spill:far", "overflow=", "fork=copy"]
OPTIONS += ["reserve=sparse", "reserve=", "weights=5", "weights=5:3", "weights="]
# Not what the machine may refuse, and nothing that fills its memory.
OPTIONS += [f"capacity={size}" for size in SIZES if size not in LARGE]
NAMES = ["", "x", "x" * 63, "x" * 64, "\u00e9" * 31, "\u00e9" * 32, "a+0x1", "a:b", "lib.so.6"]
FRAMES = [f"{BUILD_ID}+0x41a8", "name:x+0x1", "name:+0x0", "abc+0x1", f"{BUILD_ID}+0xG", "name:x"]
FRAMES += [f"name:x+0x{'f' * 16}", f"name:x+0x{'f' * 17}", f"{BUILD_ID.upper()}+0x1", ""]
CONDITIONS = [f"size={low}..{high}" for low in SIZES[:12] for high in SIZES]
CONDITIONS += [f"range={low}..{high}" for low in SIZES[:9] for high in SIZES]
CONDITIONS += [f"budget={size}" for size in SIZES]
CONDITIONS += [f"map={kind}" for kind in ("anonymous", "heap", "heap:", "stack", "", *FRAMES)]
CONDITIONS += [f"map={kind}:{name}" for kind in ("name", "file") for name in NAMES]
CONDITIONS += [f"globals=name:{name}" for name in NAMES] + [f"globals={BUILD_ID}", "globals="]
CONDITIONS += [f"site={frame}" for frame in FRAMES]
CONDITIONS += [f"site={'<'.join([FRAMES[0]] * count)}" for count in (2, 16, 17)]
CONDITIONS += [f"at={at}" for at in ("0x1000", "0x0", "4096", "0x1001", "0X1000", "")]
CONDITIONS += [
    f"ratio={ratio}" for ratio in ("0", "1", "1.", ".5", ".", "1.01", "0.123456789", "1e-3")
]
CONDITIONS += [f"thread={name}" for name in ("w*", "", "x" * 15, "x" * 16, "\u00e9" * 8)] + [
    "odd",
    "a=b",
]


def random_plan(chance: random.Random) -> bytes:
    """A plan whose statements are mostly right."""
    lines = ["hmalloc-plan 1", "tier far numa:0"]
    for _ in range(chance.randrange(1, 4)):
        if chance.randrange(3) == 0:
            options = chance.sample(OPTIONS, chance.randrange(3))
            lines.append(
                f"tier {chance.choice(TIERS)} {','.join([chance.choice(HEADS), *options])}"
            )
        else:
            conditions = chance.sample(CONDITIONS, chance.randrange(1, 3))
            lines.append(f"rule {chance.choice(TIERS[:3])} {' '.join(conditions)}")
    text = chance.choice(["\n", "\r\n", " \t\n"]).join(lines).encode()
    if chance.randrange(4) == 0:
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.choice([b"\xe9", b"\0", b"#", b"\n", b"\x0b", b"="]) + text[at:]
    return chance.choice([b"", b"", b"\xef\xbb\xbf", b"\n"]) + text + chance.choice([b"", b"\n"])


def code_here(file: Path) -> int:
    try:
        read_plan(file)
    except NearfarError as refused:
        return refused.exit_code
    return 0


def code_in_program(file: Path) -> int:
    variables = {"LD_PRELOAD": str(PRELOAD), "NEARFAR_HMALLOC_PLAN": str(file)}
    done = subprocess.run(
        ["/bin/true"], env=clean_environment() | variables, capture_output=True, check=False
    )
    return done.returncode


@pytest.mark.parametrize("seed", range(10))
def test_both_readers_give_the_same_answer(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    answers = set()
    for _ in range(30):
        file = tmp_path / "p.plan"
        file.write_bytes(random_plan(chance))
        here = code_here(file)
        assert here == code_in_program(file), file.read_bytes()[:500]
        answers.add(here)
    assert answers >= {0, 2}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"\xef\xbb\xbfhmalloc-plan 1\nrule near\n", 0),
        (b"hmalloc-plan 1\n# caf\xe9\nrule near map=file:caf\xe9\n", 0),
        (b"hmalloc-plan 1\n# \0\n", 2),
        (b"hmalloc-plan 1\n" + b"\n" * 9_999, 0),
        (b"hmalloc-plan 1\n" + b"\n" * 10_000, 2),
        (b"hmalloc-plan 1\n" + b"\n" * 9_999 + b"#", 2),
        (b"hmalloc-plan 1\nrule near map=heap size=..18446744073709551615T\n", 2),
        (b"hmalloc-plan 1\nrule near size=" + b"9" * 5000 + b"..\n", 2),
        (b"hmalloc-plan 1\ntier far numa:0,weights=5\nrule far map=heap\n", 0),
        (b"hmalloc-plan 1\ntier far numa:0+0,weights=1:1\nrule far map=heap\n", 2),
        (b"hmalloc-plan 1\ntier far numa:99\nrule far map=heap\n", 3),
        (b"".join([b"hmalloc-plan 1\n", *(b"tier t%d dram\n" % i for i in range(7))]), 3),
    ],
)
def test_both_readers_at_the_limits(tmp_path: Path, text: bytes, code: int) -> None:
    file = tmp_path / "p.plan"
    file.write_bytes(text)
    assert code_here(file) == code
    assert code_in_program(file) == code


def test_names_of_files_are_bytes(tmp_path: Path) -> None:
    file = tmp_path / "p.plan"
    file.write_bytes(b"hmalloc-plan 1\nrule near map=file:caf\xe9 # caf\xe9\n")
    (found,) = read_plan(file).rules
    assert found.name == "caf\udce9"  # as /proc/PID/maps is read
    assert found.text == "rule near map=file:caf\ufffd"


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
