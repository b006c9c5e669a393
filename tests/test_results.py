"""The pages of ``benchmarks/results`` and the files that they are written from."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
TOOL = runpy.run_path(str(ROOT / "tools" / "results.py"))
AREAS = sorted(RESULTS.glob("raw/*.json"))


def _area(file: Path) -> dict[str, Any]:
    area: dict[str, Any] = json.loads(file.read_text())
    return area


def test_pages_are_written_from_the_files() -> None:
    for name, text in TOOL["pages"]().items():
        assert (RESULTS / name).read_text() == text, f"{name}: run tools/results.py"


def test_a_changed_page_is_found(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / AREAS[0].name).write_text(AREAS[0].read_text())
    main = TOOL["main"]
    main.__globals__["RESULTS"] = tmp_path
    try:
        assert main([]) == 0
        assert main(["--check"]) == 0
        (tmp_path / f"{AREAS[0].stem}.md").write_text("edited by hand\n")
        assert main(["--check"]) == 1
    finally:
        main.__globals__["RESULTS"] = RESULTS


@pytest.mark.parametrize("file", AREAS, ids=lambda file: file.stem)
def test_every_claim_has_a_verdict_and_a_command(file: Path) -> None:
    for claim in _area(file)["claims"]:
        assert re.match(r"(reached|missed)\b", claim["verdict"]), claim
        assert claim["command"], claim
        assert re.fullmatch(r"[0-9a-f]{7,}", claim["commit"]), claim


#: Areas of which every claim names its table; in the others, some claims have none yet.
WITH_TABLES = {"memory", "placement"}


@pytest.mark.parametrize("file", AREAS, ids=lambda file: file.stem)
def test_a_claim_links_to_a_table_that_exists(file: Path) -> None:
    area = _area(file)
    titles = {table["title"] for table in area["tables"]}
    overview = (RESULTS / "README.md").read_text()
    for claim in area["claims"]:
        if file.stem in WITH_TABLES or "table" in claim:
            assert claim["table"] in titles, claim
            assert f"{file.stem}.md#" in overview


@pytest.mark.parametrize("file", AREAS, ids=lambda file: file.stem)
def test_every_row_fits_its_columns(file: Path) -> None:
    for table in _area(file)["tables"]:
        for row in table["rows"]:
            assert len(row) == len(table["columns"]), (table["title"], row)


def test_misses_stand_first() -> None:
    verdicts = re.findall(r"\| (reached|missed)", (RESULTS / "README.md").read_text())
    assert verdicts == sorted(verdicts)
    assert "missed" in verdicts
