"""Regions of a process, and what rules decide on them, page by page."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearfar.place.attached.decisions import Decisions
from nearfar.place.attached.regions import (
    Mapping,
    ProcessRegion,
    ProcessRegions,
    parse_maps,
    regions_of,
)
from nearfar.plan_files.reader import PlanRule
from nearfar.process.elf_objects import DataSegment, ElfObject, read_elf_object

PAGE = 4096
MAPS = """\
55d0a0000000-55d0a0001000 r--p 00000000 fe:00 77                         /usr/bin/prog (deleted)
55d0a0001000-55d0a0002000 r-xp 00001000 fe:00 77                         /usr/bin/prog (deleted)
55d0a0002000-55d0a0003000 r--p 00002000 fe:00 77                         /usr/bin/prog (deleted)
55d0a0003000-55d0a0004000 rw-p 00003000 fe:00 77                         /usr/bin/prog (deleted)
55d0a0004000-55d0a0008000 rw-p 00000000 00:00 0
55d0a0008000-55d0a0100000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000010000 ---p 00000000 00:00 0
7f0000010000-7f0000020000 rw-p 00000000 00:00 0
7f0000020000-7f0000021000 r-xp 00000000 00:00 0
7f0000030000-7f0000040000 rw-p 00000000 00:00 0                         [anon: glibc: malloc]
7f0000040000-7f0000050000 rw-s 00000000 00:01 9                        /memfd:shared data (deleted)
7f0000050000-7f0000060000 rw-s 00000000 00:01 10                         /dev/zero (deleted)
7f0000060000-7f0000061000 rw-s 00000000 fe:00 78                         /data/my file
7f0000061000-7f0000062000 rw-s 00005000 fe:00 78                         /data/my file
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
"""
#: .data begins within the page at 0x2000 of the file, which is mapped read-only after relocation;
#: .bss ends within the fifth page after it.
PROGRAM = ElfObject(BUILD_ID := "5f0c9ab27d41aa", 0, (DataSegment(0x2DC8, 0x6100, 0x2DC8),))


def program_of(mapping: Mapping) -> ElfObject | None:
    return PROGRAM if mapping.file[1] == 77 else None


def test_regions_are_runs_of_one_kind() -> None:
    found = regions_of(parse_maps(MAPS), program_of, "/usr/bin/prog (deleted)")
    data = ProcessRegion(0x55D0A0002000, 0x55D0A0007000, "globals", "prog", BUILD_ID, True)
    assert found == [
        ProcessRegion(0x55D0A0000000, 0x55D0A0002000, "file", "prog"),
        data,
        ProcessRegion(0x55D0A0007000, 0x55D0A0008000, "anonymous"),
        ProcessRegion(0x55D0A0008000, 0x55D0A0100000, "heap"),
        ProcessRegion(0x7F0000000000, 0x7F0000021000, "anonymous"),
        ProcessRegion(0x7F0000030000, 0x7F0000040000, "name", " glibc: malloc"),
        ProcessRegion(0x7F0000040000, 0x7F0000050000, "file", "memfd:shared data"),
        ProcessRegion(0x7F0000050000, 0x7F0000060000, "file", "zero"),
        ProcessRegion(0x7F0000060000, 0x7F0000062000, "file", "my file"),
        ProcessRegion(0x7FFC00000000, 0x7FFC00021000, "other", "[stack]"),
    ]
    assert found[1].words() == "globals=name:prog"
    assert found[5].words() == "map=name:glibc:_malloc"


def test_blanks_in_a_name_are_written_as_underscores() -> None:
    rule = plan_rule(1, placed="name", name="glibc:_malloc")
    region = ProcessRegion(16 * PAGE, 17 * PAGE, "name", " glibc: malloc")
    assert len(Decisions([rule]).of(region)) == 1
    assert Decisions([rule]).of(replace(region, name="glibc malloc")) == []


def test_a_program_that_is_only_read_has_no_globals() -> None:
    read = "\n".join(MAPS.splitlines()[:1])
    (region,) = regions_of(parse_maps(read), program_of)
    assert region.kind == "file"


MAPPINGS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(1, 4),
        st.sampled_from(["", "[heap]", "[anon:a]", "/f", "/prog"]),
    ),
    max_size=12,
)
SEGMENTS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=2)


@given(MAPPINGS, SEGMENTS)
def test_regions_cover_what_is_mapped(
    wanted: list[tuple[int, int, str]], segments: list[tuple[int, int]]
) -> None:
    mappings, at = [], 16
    offsets = {"/f": 0, "/prog": 0}
    for gap, pages, path in wanted:
        at += gap
        inode = {"/f": 1, "/prog": 2}.get(path, 0)
        offset = offsets.get(path, 0)
        if path in offsets:
            offsets[path] += pages * PAGE
        mappings.append(
            Mapping(at * PAGE, (at + pages) * PAGE, True, offset, ("fe:00", inode), path)
        )
        at += pages
    data = tuple(
        DataSegment(page * PAGE + 8, (page + pages) * PAGE - 8, page * PAGE + 8)
        for page, pages in segments
    )
    found = regions_of(
        mappings, lambda each: ElfObject("ab" * 8, 0, data) if each.file[1] == 2 else None
    )
    mapped = [page for one in mappings for page in range(one.start // PAGE, one.end // PAGE)]
    covered = [page for one in found for page in range(one.start // PAGE, one.end // PAGE)]
    assert covered == mapped
    for before, after in itertools.pairwise(found):
        same = replace(after, start=0, end=0) == replace(before, start=0, end=0)
        assert not (same and before.end == after.start)


# Decisions of rules


def plan_rule(number: int, **fields: object) -> PlanRule:
    return replace(PlanRule(number, number, "", f"tier{number}", "anonymous"), **fields)  # type: ignore[arg-type]


RULES = st.lists(
    st.fixed_dictionaries(
        {
            "placed": st.sampled_from(
                ["anonymous", "anonymous", "heap", "name", "file", "globals", "block"]
            ),
            "name": st.sampled_from(["a", "f", "abab", "name:f", "name:", "name:other"]),
            "sizes": st.tuples(st.integers(0, 5), st.integers(3, 9)).map(
                lambda pages: (pages[0] * PAGE, pages[1] * PAGE)
            ),
            "address": st.none() | st.integers(16, 20).map(lambda page: page * PAGE),
            "span": st.tuples(st.integers(0, 20_000), st.integers(1, 20_000)).map(
                lambda span: (span[0], span[0] + span[1])
            ),
        }
    ),
    max_size=6,
)
REGIONS = st.builds(
    lambda page, pages, kind, name, is_program: ProcessRegion(
        page * PAGE,
        (page + pages) * PAGE,
        kind,
        name,
        "ab" * 8 if kind == "globals" else "",
        is_program,
    ),
    st.integers(16, 20),
    st.integers(1, 8),
    st.sampled_from(["anonymous", "heap", "name", "file", "globals", "other"]),
    st.sampled_from(["a", "f"]),
    st.booleans(),
)


def decides(rule: PlanRule, region: ProcessRegion, page: int) -> bool:
    """Whether a rule holds for one page, without regard to other rules."""
    if rule.why_unseen() or rule.placed != region.kind:
        return False
    if rule.placed in ("name", "file") and rule.name != region.name:
        return False
    if rule.placed == "globals":
        named = rule.name.removeprefix("name:")
        if rule.name.startswith("name:"):
            if named != region.name and not (named == "" and region.is_program):
                return False
        elif not region.build_id.startswith(rule.name):
            return False
    if not rule.sizes[0] <= region.end - region.start <= rule.sizes[1]:
        return False
    if rule.address not in (None, region.start):
        return False
    at = page * PAGE - region.start
    return any(rule.span[0] <= byte < rule.span[1] for byte in (at, at + PAGE - 1)) or (
        at <= rule.span[0] < at + PAGE
    )


@given(RULES, REGIONS)
def test_the_first_rule_that_holds_decides_each_page(
    wanted: list[dict[str, object]], region: ProcessRegion
) -> None:
    rules = [plan_rule(number, **fields) for number, fields in enumerate(wanted, start=1)]
    by_page = {
        page: next((rule for rule in rules if decides(rule, region, page)), None)
        for page in range(region.start // PAGE, region.end // PAGE)
    }
    found: dict[int, PlanRule] = {}
    for part in Decisions(rules).of(region):
        for page in range(part.start // PAGE, part.end // PAGE):
            assert page not in found
            found[page] = part.rule
    assert found == {page: rule for page, rule in by_page.items() if rule is not None}


# A process as it is


def test_the_regions_of_this_process(tmp_path: Path) -> None:
    file = tmp_path / "some file"
    file.write_bytes(bytes(8 * PAGE))
    with file.open("r+b") as stream, mmap.mmap(stream.fileno(), 8 * PAGE) as mapped:
        at = ctypes.addressof(here := ctypes.c_char.from_buffer(mapped))
        found = ProcessRegions(os.getpid()).read()
        del here
    (region,) = [each for each in found if each.name == "some file"]
    assert region == ProcessRegion(at, at + 8 * PAGE, "file", "some file")
    assert any(each.kind == "heap" for each in found)
    programs = [each for each in found if each.is_program]
    assert len(programs) == 1
    assert all(each.start < each.end for each in found)
    starts = [each.start for each in found]
    assert starts == sorted(starts)


@pytest.mark.parametrize("flags", [[], ["-static"], ["-static-pie"], ["-no-pie"]])
def test_globals_are_found_in_every_kind_of_program(tmp_path: Path, flags: list[str]) -> None:
    (tmp_path / "p.c").write_text(
        "#include <stdio.h>\n"
        "static char data[100000] = {1}, bss[3000000];\n"
        "int main(void) {\n"
        '  printf("%p %p\\n", (void*)data, (void*)bss);\n'
        "  fflush(stdout);\n"
        "  return getchar();\n"
        "}\n"
    )
    program = tmp_path / "program"
    subprocess.run(["cc", *flags, "-Wl,--build-id", tmp_path / "p.c", "-o", program], check=True)
    with subprocess.Popen(
        [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        data, bss = (int(word, 16) for word in run.stdout.readline().split())
        found = [each for each in ProcessRegions(run.pid).read() if each.is_program]
        run.kill()
    within = [each for each in found if each.start <= data and bss + 3_000_000 <= each.end]
    assert len(within) == 1
    assert within[0].size() < 3_200_000 + 1_000_000 * bool(flags)
    known = read_elf_object(program)
    assert known is not None
    assert within[0].build_id == known.build_id
    assert len(known.build_id) == 40


def test_a_damaged_program_is_none(tmp_path: Path) -> None:
    whole = Path("/proc/self/exe").read_bytes()[:4096]
    file = tmp_path / "damaged"
    for length in (0, 3, 63, 64, 100, 200):
        file.write_bytes(whole[:length])
        read_elf_object(file)
    file.write_bytes(whole[:54] + b"\xff\xff\xff\xff" + whole[58:])
    assert read_elf_object(file) is None
    assert read_elf_object(tmp_path) is None
