from __future__ import annotations

import os
from pathlib import Path

import pytest

from nearfar.process.names import program_name


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (["/usr/bin/sort", "data.py"], "sort"),
        (["python3", "-O", "tools/run.py", "other.py"], "run.py"),
        (["/usr/bin/python3.11", "-W", "ignore", "run.py"], "run.py"),
        (["python3", "-m", "http.server", "run.py"], "http.server"),
        (["python3", "-c", "print()", "run.py"], "python3"),
        (["python3"], "python3"),
        (["perl", "-e", "1", "x.pl"], "perl"),
        (["node", "--expose-gc", "app/main.mjs"], "main.mjs"),
        (["java", "-Xmx1g", "-jar", "server.jar"], "server.jar"),
        (["./run.py", "x"], "run.py"),
        (["shuf", "a.sh"], "shuf"),
    ],
)
def test_a_script_is_named_instead_of_its_interpreter(program: list[str], name: str) -> None:
    assert program_name(program) == name


def test_a_script_without_a_suffix_is_known_by_its_first_line(tmp_path: Path) -> None:
    script = tmp_path / "tool"
    script.write_text("#!/usr/bin/python3\n")
    assert program_name(["python3", str(script)]) == "tool"
    script.write_text("data\n")
    assert program_name(["python3", str(script)]) == "python3"
    assert program_name(["python3", str(tmp_path / "missing"), "a\0b"]) == "python3"
    os.mkfifo(tmp_path / "pipe")
    assert program_name(["python3", str(tmp_path / "pipe")]) == "python3"
