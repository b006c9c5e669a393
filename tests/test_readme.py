"""The tests that README.md names for each defect exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent


def test_the_tests_of_each_defect_exist() -> None:
    rows = [line.split(" | ") for line in (TESTS / "README.md").read_text().splitlines()]
    tests = {row[0].strip("| "): row[2] for row in rows if re.match(r"\| \d", row[0])}
    assert [number for key in tests for number in map(int, key.split(","))] == [*range(1, 64)]
    for key, named in tests.items():
        text = ""
        for word, title in re.findall(r"`([^`]+)`|\"([^\"]+)\"", named):
            if re.search(r"\.(py|cpp|hpp|md)$", word):
                places = (TESTS / word, ROOT / "native" / word, ROOT / word)
                text = next(place.read_text() for place in places if place.is_file())
            elif title or not re.search(r"\W", word):
                assert (title or word) in text, (key, title or word)
