from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from conftest import RunNearfar

LENS = Path(__file__).parent / "data" / "lens_optane100_one_dimm.csv"
GOOD = [f"{64 << k},{10 if k < 6 else 30}" for k in range(12)]


def test_json_has_the_keys_of_the_contract(run_nearfar: RunNearfar) -> None:
    done = run_nearfar("probe", "--from", str(LENS), "--json", "-")
    assert (done.code, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["access_unit_bytes"] == 256
    assert document["intervals"]["access_unit_bytes"] == [128, 256]
    for knee, true in zip(document["knees"], [1 << 14, 1 << 24], strict=True):
        assert knee["low"] <= true <= knee["high"]
        assert knee["intervals"]["region_bytes"] == [knee["low"], knee["high"]]
        about = knee["provenance"]["region_bytes"]
        assert about["origin"] == "modelled"
        assert LENS.name in about["note"]


def test_text_shows_knees_and_unit(run_nearfar: RunNearfar) -> None:
    done = run_nearfar("probe", "--from", str(LENS))
    assert done.code == 0
    for reported in ("2 knees", "16–17 KiB", "Access unit: 256 B", "modelled"):
        assert reported in done.stdout


def test_order_repeats_and_other_columns_do_not_matter(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    plain = tmp_path / "plain.csv"
    plain.write_text("\n".join(["region_bytes,latency_ns", *GOOD]))
    rows = [f"{row},x" for row in GOOD]
    random.Random(1).shuffle(rows)
    shuffled = tmp_path / "shuffled.csv"
    shuffled.write_text(
        "\r\n".join(["\ufeffregion_bytes, latency_ns,remark", *rows, "", *rows[:5]]), "utf-8"
    )
    first, second = (
        json.loads(run_nearfar("probe", "--from", str(path), "--json", "-").stdout)["knees"]
        for path in (plain, shuffled)
    )
    assert [(k["region_bytes"], k["low"], k["high"]) for k in first] == [
        (k["region_bytes"], k["low"], k["high"]) for k in second
    ]
    assert len(first) == 1
    assert first[0]["low"] <= 2048 <= first[0]["high"]


def test_a_flat_curve_has_no_knee(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    curve = tmp_path / "flat.csv"
    curve.write_text("\n".join(["region_bytes,latency_ns", *(f"{64 << k},9" for k in range(9))]))
    done = run_nearfar("probe", "--from", str(curve))
    assert done.code == 0
    assert "No knee" in done.stdout
    assert "unknown" in done.stdout


@pytest.mark.parametrize(
    ("lines", "reported"),
    [
        ([""], "row 1: no column region_bytes"),
        (["region_bytes,ns", *GOOD], "row 1: no column latency_ns, only region_bytes, ns"),
        (["region_bytes,latency_ns,latency_ns", "64,1,1"], "column latency_ns is there twice"),
        (["region_bytes,latency_ns", *GOOD, "9999,nan"], "row 14, column latency_ns: 'nan'"),
        (["region_bytes,latency_ns", *GOOD, "9999,1e999"], "row 14, column latency_ns: '1e999'"),
        (["region_bytes,latency_ns", "64,-3", *GOOD], "row 2, column latency_ns: '-3'"),
        (["region_bytes,latency_ns", "64,0", *GOOD], "row 2, column latency_ns: '0'"),
        (["region_bytes,latency_ns", *GOOD, "4 KiB,3"], "row 14, column region_bytes: '4 KiB'"),
        (["region_bytes,latency_ns", *GOOD, "64.5,3"], "row 14, column region_bytes: 64.5"),
        (["region_bytes,latency_ns", *GOOD, "1e30,3"], "row 14, column region_bytes: 1e30"),
        (
            ["region_bytes,latency_ns", *GOOD, "77"],
            "row 14: more or fewer cells than the 2 columns",
        ),
        (["region_bytes,latency_ns", "64,1,2"], "row 2: more or fewer cells"),
        (["region_bytes,latency_ns", *GOOD[:5]], "5 different regions, and knees need 6"),
        (["region_bytes,latency_ns", *(["64,1"] * 9)], "1 different regions, and knees need 6"),
        (["region_bytes,latency_ns,ntwrite_ns", "64,1,"], "row 2, column ntwrite_ns: ''"),
    ],
)
def test_a_damaged_file_is_refused_with_the_place(
    lines: list[str], reported: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    curve = tmp_path / "curve.csv"
    curve.write_text("\n".join(lines))
    done = run_nearfar("probe", "--from", str(curve))
    done.assert_refused(2, reported)
    assert str(curve) in done.stderr


def test_a_file_that_is_not_text_is_refused(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    run_nearfar("probe", "--from", str(tmp_path)).assert_refused(2, "Is a directory")
    absent = run_nearfar("probe", "--from", str(tmp_path / "none.csv"))
    absent.assert_refused(2, "none.csv: No such file")
    picture = tmp_path / "picture.csv"
    picture.write_bytes(bytes(range(256)))
    run_nearfar("probe", "--from", str(picture)).assert_refused(
        2, "picture.csv: it is a binary file"
    )


def test_flags_that_would_be_ignored_are_refused(run_nearfar: RunNearfar) -> None:
    done = run_nearfar("probe", "--from", str(LENS), "--threads", "2")
    done.assert_refused(2, "--threads does not go with --from")
