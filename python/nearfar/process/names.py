"""The name of a program for files and titles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

#: Interpreters, by their names without a version, and the ends of the names of their programs.
_INTERPRETERS = {
    "python": (".py", ".pyz"),
    "pypy": (".py", ".pyz"),
    "perl": (".pl",),
    "ruby": (".rb",),
    "node": (".js", ".mjs", ".cjs"),
    "lua": (".lua",),
    "php": (".php",),
    "Rscript": (".R", ".r"),
    "java": (".jar", ".java"),
    "bash": (".sh", ".bash"),
    "dash": (".sh",),
    "sh": (".sh",),
}


def program_name(program: Sequence[str]) -> str:
    """Without its folder: of an interpreter that runs a file or a module, the name of that."""
    started = Path(program[0]).name
    ends = _INTERPRETERS.get(started.rstrip("0123456789."), ())
    if not ends:
        return started
    arguments = list(program[1:])
    while arguments:
        word = arguments.pop(0)
        if word in ("-c", "-e"):  # the program itself
            return started
        if word == "-m" and arguments and ".py" in ends:
            return arguments[0]
        if not word.startswith("-") and (word.endswith(ends) or _is_script(Path(word))):
            return Path(word).name
    return started


def _is_script(path: Path) -> bool:
    """Whether its first line names an interpreter."""
    try:
        if not path.is_file():  # a pipe would lose what the program is to read
            return False
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except (OSError, ValueError):
        return False
