"""Source lines of findings."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from nearfar.verify.findings import Exploration, Finding
from nearfar.verify.sarif import exploration
from nearfar.verify.symbols import source_lines

HEADER = """\
#include <vector>
struct Tree {
  long keys[8];
  void put(long key);
};
inline __attribute__((noinline)) void Tree::put(long key) {
  for (int i = 7; i > 0; --i)
    keys[i] = keys[i - 1];
  keys[0] = key;
}
"""
PROGRAM = """\
#include "tree.h"
int main(int c, char**) {
  Tree t{};
  t.put(c);
  return t.keys[3];
}
"""

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def compiled(folder: Path, *flags: str) -> tuple[Path, int]:
    """A program, and the address of its function in the header."""
    (folder / "tree.h").write_text(HEADER)
    (folder / "main.cpp").write_text(PROGRAM)
    program = folder / "main"
    command = ["g++", "-O1", *flags, "main.cpp", "-o", "main"]
    subprocess.run(command, cwd=folder, check=True)
    names = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    (line,) = [line for line in names.splitlines() if line.endswith("_ZN4Tree3putEl")]
    return program, int(line.split()[0], 16)


@needs_compiler
@pytest.mark.parametrize("flags", [("-g",), ("-g", "-gdwarf-4"), ("-g", "-no-pie")])
def test_code_from_a_header_is_named_by_the_header(flags: tuple[str, ...], tmp_path: Path) -> None:
    program, address = compiled(tmp_path, *flags)
    place = f"{program}+{address + 1:#x}"  # places are return addresses
    assert Path(source_lines([place])[place]).name in ("tree.h:6", "tree.h:7")


@needs_compiler
def test_without_lines_the_function_is_named(tmp_path: Path) -> None:
    program, address = compiled(tmp_path)
    place = f"{program}+{address + 1:#x}"
    named = source_lines([place])[place]
    assert named == f"Tree::put(long) (main+{address + 1:#x})"
    finding = Finding("broken", "x", "flush", named, "", 1, 0, False, False, False, 1, 1, "")
    located = str(exploration(Exploration(violations=1, findings=[finding])))
    assert "startLine" not in located
    assert "Tree%3A%3Aput" in located
