"""Files are written whole or not at all; devices and links are not replaced by files."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nearfar.errors import BadInputError, MachineError
from nearfar.files import read_text, require_place, write_whole


def test_a_file_is_replaced_without_leftovers(tmp_path: Path) -> None:
    file = tmp_path / "result"
    for text in ("first", "second"):
        write_whole(file, text, "try another")
        assert file.read_text() == text
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to("result")
    write_whole(tmp_path / "latest", "text", "try another")
    assert (tmp_path / "latest").is_symlink()
    assert (tmp_path / "result").read_text() == "text"


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, "text", "try another")
        assert os.read(reader, 100) == b"text"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_a_pipe_without_a_writer_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(BadInputError, match="an empty pipe that no program writes to") as error:
        read_text(pipe, "try another")
    assert error.value.next_step == "try another"


@pytest.mark.parametrize("early", [b"", b"be"])
def test_a_pipe_with_a_writer_is_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch, early: bytes
) -> None:
    set_blocking, opened = os.set_blocking, threading.Event()

    def note(descriptor: int, blocking: bool) -> None:
        set_blocking(descriptor, blocking)
        opened.set()

    monkeypatch.setattr(os, "set_blocking", note)
    reader, writer = os.pipe()  # as a shell's <(...)
    os.write(writer, early)
    with ThreadPoolExecutor(1) as pool:
        text = pool.submit(read_text, f"/proc/self/fd/{reader}", "try another")
        assert opened.wait(60)
        os.write(writer, b"fore")
        os.close(writer)
        assert text.result(60) == f"{early.decode()}fore"
    os.close(reader)


def test_an_unwritable_file_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="cannot write") as error:
        write_whole(tmp_path / "none" / "result", "text", "try another")
    assert error.value.next_step == "try another"
    assert list(tmp_path.iterdir()) == []


def test_a_place_is_refused_before_it_is_written_and_nothing_is_made_there(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "latest").symlink_to("result")
    for good in ("new", "file", "latest"):
        require_place(tmp_path / good, "try another")
    require_place(Path("/dev/null"), "try another")
    for bad, why in ((".", "Is a directory"), ("none/new", "No such file"), ("file/new", "Not a")):
        with pytest.raises(MachineError, match=why) as error:
            require_place(tmp_path / bad, "try another")
        assert error.value.next_step == "try another"
    assert {path.name for path in tmp_path.iterdir()} == {"file", "latest"}
