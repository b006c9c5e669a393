"""Pictures in the documents are those that their scripts draw from recorded data."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_picture_of_stalls_is_of_its_data() -> None:
    script = runpy.run_path(str(ROOT / "benchmarks" / "sampled_stalls.py"))
    data = json.loads((ROOT / "benchmarks" / "sampled_stalls" / "data.json").read_text())
    drawn = (ROOT / "docs" / "pictures" / "sampled-stalls.svg").read_text()
    assert drawn == script["picture"](data), "run benchmarks/sampled_stalls.py"


def test_a_picture_of_a_terminal_shows_command_and_output_and_loads_nothing() -> None:
    script = runpy.run_path(str(ROOT / "tools" / "terminal_picture.py"))
    drawn = script["picture"]("nearfar x", "\x1b[1mAdvice\x1b[0m for <x>\n\n· a note\n  more\n")
    text = "".join(re.findall(r"<text[^>]*>([^<]*)</text>", drawn)).replace("&#160;", " ")
    assert "nearfar x" in text
    assert "for &lt;x&gt;" in text
    assert "..." in text
    assert "a note" not in text
    for picture in (drawn, (ROOT / "docs" / "pictures" / "advise.svg").read_text()):
        assert set(re.findall(r"https?://[^\"' <]+", picture)) <= {"http://www.w3.org/2000/svg"}
