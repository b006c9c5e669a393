"""`nearfar compare --tier`: two tiers, of one run or of two."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import factories
from nearfar.cli.app import main
from nearfar.records.run import Run


def save(run: Run, directory: Path) -> str:
    directory.mkdir()
    (directory / "run.json").write_text(run.model_dump_json(indent=1, exclude_none=True))
    return str(directory)


def test_two_tiers_of_a_run_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = factories.study()
    latency = run.sections.latency
    assert latency is not None
    small = next(curve for curve in latency.curves if curve.pages == "4k")
    huge = next(curve for curve in latency.curves if curve.pages != "4k")
    small.tier, huge.tier = "dram,pages=4k", f"dram,pages={huge.pages}"
    for point in huge.points:
        point.latency_ns *= 2
        point.intervals = {key: (2 * a, 2 * b) for key, (a, b) in point.intervals.items()}
    path = save(run, tmp_path / "run")
    flags = ["--tier", "dram", "--tier", huge.tier]
    assert main(["compare", path, *flags, "--json", "-"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["tiers"] == ["dram", huge.tier]
    regions = {point.region_bytes for point in small.points}
    compared = [each for each in document["figures"] if each["path"].startswith("latency")]
    assert len(compared) == len(regions & {point.region_bytes for point in huge.points})
    other = save(run, tmp_path / "other")
    assert main(["compare", path, other, *flags]) == 1
    assert f"other {huge.tier}" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["RUN", "--tier", "dram"], "--tier needs two tiers"),
        (["RUN", "--tier", "dram", "--tier", "numa:7"], "has no figure of tier numa:7"),
        (["ddr4", "pcm-lee", "--tier", "dram", "--tier", "shm:"], "runs, and ddr4 is none"),
        (["RUN"], "or one run and two of its tiers"),
    ],
)
def test_tiers_that_cannot_be_compared(
    arguments: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(factories.study(), tmp_path / "run")
    assert main(["compare", *(path if each == "RUN" else each for each in arguments)]) == 2
    assert why in capsys.readouterr().err
