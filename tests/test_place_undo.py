"""Data for moving pages back: their origins, and the journal of a run."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearfar.errors import BadInputError
from nearfar.place.attached import undo_journal
from nearfar.place.attached.page_origins import PageOrigins
from nearfar.process.running_process import RunningProcess

PAGE = 4096


@given(
    st.lists(
        st.tuples(st.integers(16300, 16500), st.integers(1, 80), st.sampled_from([0, 1, 63, None]))
    )
)
def test_origins_are_those_of_the_first_move(steps: list[tuple[int, int, int | None]]) -> None:
    origins = PageOrigins()
    naive: dict[int, int] = {}
    for first, pages, node in steps:
        for page in range(first, first + pages):
            if node is None:
                naive.pop(page, None)
            else:
                naive.setdefault(page, node)
        if node is None:
            origins.clear(first * PAGE, (first + pages) * PAGE)
        else:
            origins.set_first(first * PAGE, pages, node)
    assert {
        address // PAGE + page: node
        for address, pages, node in origins.runs()
        for page in range(pages)
    } == naive
    assert origins.count(16300 * PAGE, 300) == len(naive)


def journal_of(folder: Path, *moved: tuple[int, int, int]) -> Path:
    folder.mkdir(parents=True)
    with (
        RunningProcess(os.getpid()) as here,
        undo_journal.UndoJournal(folder, here.identity) as file,
    ):
        file.add(moved[:1])
        file.add(moved[1:])
    return folder / undo_journal.NAME


def test_a_journal_is_read_back(tmp_path: Path) -> None:
    file = journal_of(tmp_path / "run", (8 * PAGE, 4, 0), (9 * PAGE, 4, 1))
    with file.open("a") as stream:
        stream.write('{"moved": [[40960')  # killed while it wrote
    assert list(undo_journal.read_origins(file).runs()) == [
        (8 * PAGE, 4, 0),
        (12 * PAGE, 1, 1),
    ]


@pytest.mark.usefixtures("in_tmp_path")
def test_the_newest_journal_of_this_very_process_is_found(tmp_path: Path) -> None:
    runs = tmp_path / "nearfar-runs"
    files = [journal_of(runs / name, (PAGE, 1, 0)) for name in ("z", "a", "b")]
    for age, file in enumerate(files):
        os.utime(file, ns=(age, age))
    with RunningProcess(os.getpid()) as here:
        process = here.identity
    find = undo_journal.find_journal
    assert find(process, None).parent.name == "b"
    undo_journal.mark_undone(files[2])
    assert find(process, None).parent.name == "a"
    assert find(process, runs / "z") == Path(files[0])
    with pytest.raises(BadInputError, match="was reverted already"):
        find(process, runs / "b")
    with pytest.raises(BadInputError, match="nothing was moved"):
        find(process, runs)
    later = replace(process, started=process.started + 1)
    with pytest.raises(BadInputError, match="of another process"):
        find(later, runs / "z")
    for other in (later, replace(process, boot="another"), replace(process, pid=1)):
        with pytest.raises(BadInputError, match="no record"):
            find(other, None)


def test_pages_that_move_again_are_not_written_again(tmp_path: Path) -> None:
    again = [(8 * PAGE, 4, 1)] * 3
    file = journal_of(tmp_path / "run", (8 * PAGE, 4, 0), *again, (10 * PAGE, 3, 1))
    assert len(file.read_text().splitlines()) == 3
    assert list(undo_journal.read_origins(file).runs()) == [(8 * PAGE, 4, 0), (12 * PAGE, 1, 1)]


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    file = tmp_path / undo_journal.NAME
    for text in ("", "x", "[1]\n", '{"version": 2}\n', '{"version": 1, "process": {"pid": 1}}\n'):
        file.write_text(text)
        with pytest.raises(BadInputError, match="not a journal"):
            undo_journal.process_of(file)


@pytest.mark.parametrize(
    "line",
    [
        '{"moved": "xyz"}',
        '{"moved": [[4096, 1]]}',
        '{"moved": [["a", "b", "c"]]}',
        '{"moved": 5}',
        '{"moved": null}',
        '{"moved": [[4096, 1, 0], [8192, true, 0]]}',
        '{"moved": [[4097, 1, 0]]}',
        '{"moved": [[-4096, 1, 0]]}',
        '{"moved": [[4096, -1, 0]]}',
        '{"moved": [[4096, 0, 0]]}',
        '{"moved": [[4096, 99999999999999999999999, 0]]}',
        '{"moved": [[4096, 1e300, 0]]}',
        '{"moved": [[4096, 1, -5]]}',
        '{"moved": [[4096, 1, 9999]]}',
        f'{{"moved": [[{1 << 60}, 1, 0]]}}',
        f'{{"moved": [[{"9" * 5000}, 1, 0]]}}',
        "[1]",
        "[" * 100_000,
        "",
        "\x00",
    ],
)
def test_a_damaged_line_of_a_journal_is_refused(tmp_path: Path, line: str) -> None:
    file = journal_of(tmp_path / "run", (PAGE, 1, 0))
    with file.open("a") as stream:
        stream.write(f"{line}\n")
    with pytest.raises(BadInputError, match=r"jsonl:3: the journal is damaged"):
        undo_journal.read_origins(file)


def test_a_line_that_was_cut_off_does_not_hide_that_the_journal_was_undone(tmp_path: Path) -> None:
    file = journal_of(tmp_path / "run", (PAGE, 1, 0))
    with file.open("a") as stream:
        stream.write('{"moved": [[40960')
    undo_journal.mark_undone(file)
    with RunningProcess(os.getpid()) as here, pytest.raises(BadInputError, match="already"):
        undo_journal.find_journal(here.identity, file.parent)
    assert list(undo_journal.read_origins(file).runs()) == [(PAGE, 1, 0)]


def test_a_journal_that_is_still_written_is_not_reverted(tmp_path: Path) -> None:
    file = journal_of(tmp_path / "run", (PAGE, 1, 0))
    undo_journal.require_free(file)
    with file.open() as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(BadInputError, match="still moves pages"):
            undo_journal.require_free(file)


def test_the_journal_is_lines_of_json(tmp_path: Path) -> None:
    file = journal_of(tmp_path / "run", (PAGE, 1, 0), (2 * PAGE, 3, 1))
    first, *moved = map(json.loads, file.read_text().splitlines())
    assert first["process"]["pid"] == os.getpid()
    assert moved == [{"moved": [[PAGE, 1, 0]]}, {"moved": [[2 * PAGE, 3, 1]]}]


def test_a_program_started_by_a_link_has_the_name_of_the_link(tmp_path: Path) -> None:
    link = tmp_path / "my-server"
    link.symlink_to("/bin/sleep")
    for started, named in ((str(link), "my-server"), ("/bin/sleep", "sleep")):
        with subprocess.Popen([started, "60"]) as process:
            with RunningProcess(process.pid) as program:
                assert program.command().rpartition("/")[2] == named
            process.kill()
