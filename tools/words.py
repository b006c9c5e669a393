"""Find words that the style of this project replaces by standard terms.

Usage: words.py [--update]

Reads every line of sources, tests and documents. ``tools/words.toml`` has the words with what
replaces them, the files that are exempt with the reason, and for each folder the number of lines
that are still to be rewritten: a higher number fails, a lower one is written with ``--update``.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LIST = ROOT / "tools" / "words.toml"
_ENDINGS = (".py", ".cpp", ".hpp", ".h", ".c", ".md", ".j2", ".toml")


def banned(rules: dict[str, Any]) -> re.Pattern[str]:
    """A pattern of all words of the list, also as parts of snake_case identifiers."""
    return re.compile(rf"(?<![a-z0-9])(?:{'|'.join(rules['words'])})(?![a-z0-9])", re.IGNORECASE)


def files(rules: dict[str, Any]) -> list[str]:
    """Files under version control that are read."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    exempt = tuple(rules["exempt"])
    return [name for name in listed if name.endswith(_ENDINGS) and not name.startswith(exempt)]


def folder_of(name: str) -> str:
    """The folder that a file is counted in: two levels of sources, one of all else."""
    parts = name.split("/")
    if len(parts) == 1:
        return "."
    deep = parts[0] in ("native", "python") and len(parts) > 2
    levels = 3 if parts[0] == "python" and len(parts) > 3 else 2
    return "/".join(parts[:levels] if deep else parts[:1])


def found(rules: dict[str, Any]) -> dict[str, list[str]]:
    """Lines with such a word, by folder."""
    pattern = banned(rules)
    lines: dict[str, list[str]] = {}
    for name in files(rules):
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
            if match := pattern.search(line):
                place = f"{name}:{number}: {match[0]}: {line.strip()}"
                lines.setdefault(folder_of(name), []).append(place)
    return lines


def main(arguments: list[str]) -> int:
    """The exit code: 1 if a folder has more such lines than it may have."""
    text = LIST.read_text()
    rules = tomllib.loads(text)
    lines = found(rules)
    counts = Counter({folder: len(places) for folder, places in lines.items()})
    left: dict[str, int] = rules["left"]
    if "--update" in arguments:
        head = text[: text.index("[left]")]
        rows = [f'"{folder}" = {counts[folder]}' for folder in sorted(counts)]
        LIST.write_text(head + "[left]\n" + "\n".join(rows) + "\n")
        return 0
    worse = [folder for folder in sorted(counts) if counts[folder] > left.get(folder, 0)]
    for folder in worse:
        print(f"{folder}: {counts[folder]} lines, at most {left.get(folder, 0)}; new ones among:")
        print("\n".join(f"  {place}" for place in lines[folder][:40]))
    if worse:
        print("replace these words: tools/words.toml has the standard terms")
    if any(counts[folder] < number for folder, number in left.items()):
        print("fewer lines than tools/words.toml has: run tools/words.py --update")
    return bool(worse)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
