"""Flags that were renamed: the old name works for one release, with a note on standard error."""

from __future__ import annotations

from collections.abc import Sequence

#: By verb: old name, new name.
RENAMED = {
    "bench intset": {"-n": "--entries"},
    "bench lbm": {"-n": "--problem-size"},
    "bench malloc": {"-n": "--blocks"},
    "bench matmul": {"-n": "--problem-size"},
    "bench sort": {"-n": "--problem-size"},
    "predict map-get": {"--ops": "--operations"},
    "predict map-insert": {"--ops": "--operations"},
    "predict map-remove": {"--ops": "--operations"},
    "predict structure": {"--size-entries": "--entries"},
    "sim": {"-n": "--requests", "--suite": "--experiment"},
    "trace show": {"-n": "--count"},
}


def with_new_names(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command line with new names of flags, and a note for each old name used."""
    verb = next((v for v in RENAMED if [*arguments[: v.count(" ") + 1]] == v.split()), "")
    renamed = RENAMED.get(verb, {})
    words: list[str] = []
    used: list[str] = []
    for i, word in enumerate(arguments):
        if word == "--":
            return [*words, *arguments[i:]], _notes(verb, renamed, used)
        old = next((name for name in renamed if _is(word, name)), None)
        words.append(_renamed(word, old, renamed[old]) if old else word)
        used += [old] if old else []
    return words, _notes(verb, renamed, used)


def _is(word: str, name: str) -> bool:
    """Whether a word is a flag, alone or with its value: ``--ops=5``, ``-n5``."""
    if name.startswith("--"):
        return word == name or word.startswith(f"{name}=")
    return word == name or (word.startswith(name) and word[len(name) :].isdecimal())


def _renamed(word: str, old: str, new: str) -> str:
    value = word.removeprefix(old).removeprefix("=")
    return f"{new}={value}" if value else new


def _notes(verb: str, renamed: dict[str, str], used: Sequence[str]) -> list[str]:
    return [
        f"nearfar {verb} {old} is deprecated: use {renamed[old]}" for old in dict.fromkeys(used)
    ]
