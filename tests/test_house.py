"""Form of the Python code that ruff does not check: length of functions, exceptions from ruff."""

from __future__ import annotations

from pathlib import Path

from function_lengths import lengths

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "nearfar"
#: Most functions of more than 30 lines of code.
MOST_LONG_FUNCTIONS = 10
#: Most lines whose form a person chose.
MOST_EXEMPT_LINES = 50


def test_few_functions_are_long() -> None:
    long = [
        f"{file.relative_to(ROOT)}:{name}"
        for file in PACKAGE.rglob("*.py")
        for name, lines in lengths(file.read_text()).items()
        if lines > 30
    ]
    assert len(long) <= MOST_LONG_FUNCTIONS, long


def test_few_lines_are_exempt_from_the_formatter() -> None:
    exempt = [
        line
        for folder in ("python", "tests", "benchmarks", "tools")
        for file in (ROOT / folder).rglob("*.py")
        for line in file.read_text().splitlines()
        if line.endswith("# fmt: " + "skip")
    ]
    assert len(exempt) <= MOST_EXEMPT_LINES
