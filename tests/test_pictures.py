"""Pictures in the documents are those that their scripts draw from recorded data."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_picture_of_stalls_is_of_its_data() -> None:
    script = runpy.run_path(str(ROOT / "benchmarks" / "sampled_stalls.py"))
    data = json.loads((ROOT / "benchmarks" / "sampled_stalls" / "data.json").read_text())
    drawn = (ROOT / "docs" / "pictures" / "sampled-stalls.svg").read_text()
    assert drawn == script["picture"](data), "run benchmarks/sampled_stalls.py"
