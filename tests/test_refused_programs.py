"""Programs with the known mistakes of persistent programming must not compile, and say why.

Each lies in ``programs/refused`` and says in ``// expected:`` lines, as regular expressions, what
the compiler must print.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROGRAMS = ROOT / "tests" / "programs" / "refused"
COMPILERS = ["g++", "clang++-14"]
FLAGS = ["-std=c++20", "-msse4.2", "-Werror=unused-result", f"-I{ROOT}/include", f"-I{ROOT}/native"]
NAMES = sorted(p.stem for p in PROGRAMS.glob("*.cpp"))


def compiled(compiler: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [compiler, *FLAGS, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def header(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """For each compiler that is there: the flags by which it reads common.hpp compiled once."""
    found = {}
    for compiler in filter(shutil.which, COMPILERS):
        folder = tmp_path_factory.mktemp(compiler)
        shutil.copy(PROGRAMS / "common.hpp", folder)
        is_clang = compiler.startswith("clang")
        output = folder / ("common.pch" if is_clang else "common.hpp.gch")
        result = compiled(compiler, "-x", "c++-header", folder / "common.hpp", "-o", output)
        assert result.returncode == 0, result.stderr
        use = (
            ["-include-pch", str(output)] if is_clang else ["-include", str(folder / "common.hpp")]
        )
        found[compiler] = [*use, "-fsyntax-only"]
    return found


def test_there_is_a_program_for_each_pitfall() -> None:
    assert len(NAMES) >= 20


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", NAMES)
def test_is_refused_with_the_reason(name: str, compiler: str, header: dict[str, list[str]]) -> None:
    if compiler not in header:
        pytest.skip(f"{compiler} is not installed: tools/packages clang")
    source = PROGRAMS / f"{name}.cpp"
    expected = re.findall(r"^// expected: (.+)$", source.read_text(), re.MULTILINE)
    assert expected, "the program does not say what is expected"
    result = compiled(compiler, *header[compiler], source)
    assert result.returncode != 0, "it compiled"
    for pattern in expected:
        assert re.search(pattern, result.stderr), f"no {pattern!r} in:\n{result.stderr[:3000]}"
