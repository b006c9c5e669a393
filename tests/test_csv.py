"""``--csv``: every verb that prints tables writes them as CSV, too."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from conftest import RunNearfar
from nearfar.report.csv_tables import csv_of
from test_cli_contract import named, verbs

DOCUMENT = {
    "program": ["sort", "-n"],
    "machine": {"cpus": 2},
    "intervals": {},
    "variants": [
        {
            "variant": "near",
            "time_s": 1.5,
            "absent": None,
            "intervals": {"time_s": [1.25, 1.75]},
            "provenance": {"time_s": {"origin": "measured", "statistic": "median"}},
            "sites": [{"name": "a, b", "bytes": 64}, {"name": "c", "bytes": 1 << 40}],
        }
    ],
    "tiers": {"far": {"latency_ns": 0.1, "banks": [{"bank": 0, "hits": 3}]}},
}


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def test_tables_of_a_document() -> None:
    result, variant, first, second, bank = rows_of(csv_of(DOCUMENT))
    assert result["table"] == "result"
    assert (result["program"], result["tiers.far.latency_ns"]) == ("sort; -n", "0.1")
    assert "cpus" not in "".join(result)
    assert variant["table"] == "variants"
    assert (variant["time_s"], variant["time_s_low"], variant["time_s_high"]) == (
        "1.5",
        "1.25",
        "1.75",
    )
    assert variant["time_s_origin"] == "measured"
    assert [row["table"] for row in (first, second)] == ["variants.sites"] * 2
    assert (first["name"], first["variant"], first["bytes"]) == ("a, b", "near", "64")
    assert second["bytes"] == str(1 << 40)
    assert (bank["table"], bank["hits"], bank["variant"]) == ("tiers.far.banks", "3", "")


@pytest.mark.parametrize(
    "verb",
    [
        ("profile", "list"),
        ("doctor",),
        ("topo",),
        ("show", "cxl-asic"),
        ("sim", "--pattern", "random", "--requests", "20000"),
        ("crash", "check", "--structure", "list", "-n", "5"),
        ("sim", "--curve", "--far", "ddr4-3200", "--requests", "2000"),
    ],
    ids=" ".join,
)
def test_rows_have_the_numbers_of_the_json(
    verb: tuple[str, ...], run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    target = tmp_path / "answer.json"
    done = run_nearfar(*verb, "--csv", "-", "--json", str(target))
    assert done.code == 0, done.stderr
    rows = rows_of(done.stdout)
    assert rows
    assert all(row["table"] for row in rows)
    assert done.stdout == csv_of(json.loads(target.read_text()))


@pytest.mark.parametrize("verb", verbs(), ids=named)
def test_every_verb_with_json_has_csv(verb: tuple[str, ...], run_nearfar: RunNearfar) -> None:
    text = run_nearfar(*verb, "--help").stdout
    assert ("--json " in text) <= ("--csv " in text)


def test_standard_output_has_one_document(run_nearfar: RunNearfar) -> None:
    done = run_nearfar("profile", "list", "--json", "-", "--csv", "-")
    assert done.code == 2
    assert "cannot both write to standard output" in done.stderr
    assert json.loads(done.stdout)["exit_code"] == 2


def test_a_file_leaves_the_text_on_standard_output(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    plain = run_nearfar("profile", "list")
    done = run_nearfar("profile", "list", "--csv", str(tmp_path / "profiles.csv"))
    assert done.stdout == plain.stdout
    assert {row["table"] for row in rows_of((tmp_path / "profiles.csv").read_text())} == {
        "profiles"
    }


def test_an_unwritable_file_is_refused_before_the_work(run_nearfar: RunNearfar) -> None:
    done = run_nearfar("study", "--csv", "/nonexistent/study.csv")
    done.assert_refused(3, "cannot write /nonexistent/study.csv")
