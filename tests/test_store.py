from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from nearfar import store
from nearfar.cli.flags import record_place
from nearfar.errors import BadInputError, MachineError
from nearfar.records.figures import Origin, figure_fields
from nearfar.records.results import LatencyCurve, LatencyPoint, LatencyResult
from nearfar.records.run import SCHEMA_VERSION, Run
from nearfar.report.wording import interval_of
from nearfar.stats import median


def made_run(**changes: object) -> Run:
    fields: dict[str, object] = {
        "nearfar_version": "0.1.0",
        "verb": "probe",
        "arguments": {"tier": ["dram"]},
        "started": "2024-05-06T07:08:09Z",
        "seed": 1,
        "machine": {"id": "m1"},
    }
    return Run.model_validate({**fields, **changes})


def measured_run() -> Run:
    run = made_run()
    latency = {"latency_ns": median([80.0, 81.5, 79.0] * 2)}
    point = LatencyPoint(region_bytes=4096, **figure_fields(Origin.MEASURED, latency, seed=1))
    curve = LatencyCurve(tier="dram", pages="4k", block_bytes=64, cpu=0, points=[point])
    run.sections.latency = LatencyResult(
        curves=[curve], effective_last_cache_bytes=1 << 20, effective_last_cache_source="knee"
    )
    return run


def test_a_written_profile_is_read_back(tmp_path: Path) -> None:
    directory = store.RunDirectory.create(measured_run(), tmp_path / "run")
    assert store.read_run(tmp_path / "run") == directory.run
    assert store.read_run(tmp_path / "run" / "run.json") == directory.run
    result = directory.run.sections.latency
    assert result is not None
    assert result.curves[0].points[0].estimate("latency_ns") == (80.0, 79.0, 81.5)
    assert result.curves[0].points[0].estimate("region_bytes") == (4096, 4096, 4096)


def test_every_save_replaces_the_whole_record(tmp_path: Path) -> None:
    directory = store.RunDirectory.create(made_run(), tmp_path / "run")
    directory.run.status = "finished"
    directory.save()
    assert store.read_run(tmp_path / "run").status == "finished"
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["run.json"]


def test_half_a_record_left_by_a_crash_does_not_matter(tmp_path: Path) -> None:
    directory = store.RunDirectory.create(made_run(), tmp_path / "run")
    (tmp_path / "run" / "run.json.partial").write_text('{"schema_ver')
    assert store.read_run(tmp_path / "run") == directory.run
    directory.save()
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["run.json"]


def test_a_save_that_fails_keeps_the_old_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = store.RunDirectory.create(made_run(), tmp_path / "run")

    def full_disk(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    directory.run.status = "finished"
    with pytest.raises(MachineError, match="No space left") as refused:
        directory.save()
    assert refused.value.next_step
    assert store.read_run(tmp_path / "run").status == "running"


def test_samples_are_lines_of_json(tmp_path: Path) -> None:
    directory = store.RunDirectory.create(made_run(), tmp_path / "run")
    directory.add_samples("latency dram 4096", "ns", [1.5, 2.5])
    directory.add_samples("copy", "B/s", [3.0])
    lines = (tmp_path / "run" / "samples.jsonl").read_text().splitlines()
    assert [json.loads(line)["values"] for line in lines] == [[1.5, 2.5], [3.0]]
    assert json.loads(lines[0])["unit"] == "ns"


def test_a_directory_that_exists_is_never_overwritten(tmp_path: Path) -> None:
    store.RunDirectory.create(made_run(), tmp_path / "run")
    with pytest.raises(BadInputError, match="exists already"):
        store.RunDirectory.create(made_run(), tmp_path / "run")


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="cannot make") as refused:
        store.RunDirectory.create(made_run(), tmp_path / "file" / "run")
    assert "--out" in refused.value.next_step


def test_parents_of_a_directory_that_cannot_be_made_are_removed(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="File name too long"):
        store.RunDirectory.create(made_run(), tmp_path / "new" / "newer" / ("x" * 300))
    assert list(tmp_path.iterdir()) == []


def test_a_directory_below_one_that_may_not_be_searched(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0)
    user = os.geteuid()
    if not user:
        os.seteuid(65534)  # root may search every directory
    try:
        with pytest.raises((BadInputError, MachineError)) as refused:
            record_place(locked / "new" / "run")
    finally:
        os.seteuid(user)
    assert str(locked) in refused.value.what
    assert refused.value.next_step


@pytest.mark.parametrize("content", [b"int main(void) { return 0; }\n", b"", b"a = 1\n", b"\0\1"])
def test_a_file_that_is_no_record_is_not_called_damaged(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "prog.c"
    file.write_bytes(content)
    with pytest.raises(BadInputError) as refused:
        store.read_run(file)
    assert str(file) in refused.value.what
    assert "damaged" not in refused.value.what
    assert (
        refused.value.next_step == "give a run directory, such as nearfar-runs/…, or its run.json"
    )


def test_default_names_contain_time_and_verb_and_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = made_run(verb="bench stream")
    paths = [store.RunDirectory.create(run).path for _ in range(3)]
    assert [str(p) for p in paths] == [
        "nearfar-runs/20240506T070809Z-bench-stream",
        "nearfar-runs/20240506T070809Z-bench-stream-2",
        "nearfar-runs/20240506T070809Z-bench-stream-3",
    ]


def damage(path: Path, **changes: object) -> Path:
    document = json.loads(made_run().model_dump_json())
    path.write_text(json.dumps({**document, **changes}))
    return path


def test_damaged_records_say_where(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    for text, complaint in {
        '{"schema_version": 1,\n "verb"': "damaged: line 2",
        "[]": "is not a record of nearfar: it has no schema_version",
        "null": "is not a record of nearfar: it has no schema_version",
        "7": "is not a record of nearfar: it has no schema_version",
        "{}": "is not a record of nearfar: it has no schema_version",
        '{"schema_version": 1}': "damaged at nearfar_version",
        '{"schema_version": 1, "record": "nearfar-runs/x"}': "is the JSON result of a verb",
    }.items():
        file.write_text(text)
        with pytest.raises(BadInputError, match=complaint) as refused:
            store.read_run(tmp_path)
        assert refused.value.next_step
    changed: list[tuple[dict[str, object], str]] = [
        ({"seed": "many"}, "damaged at seed"),
        ({"status": "lost"}, "damaged at status"),
        ({"unknown": 1}, "does not know: unknown"),
        ({"sections": {"latency": {"curves": 3}}}, "damaged at sections.latency.curves"),
    ]
    for changes, complaint in changed:
        with pytest.raises(BadInputError, match=complaint):
            store.read_run(damage(file, **changes))


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, 0, -1, "1", None, 1.5])
def test_other_schema_versions_are_refused(tmp_path: Path, version: object) -> None:
    file = damage(tmp_path / "run.json", schema_version=version)
    with pytest.raises(BadInputError, match="not a record this nearfar reads"):
        store.read_run(file)


def test_missing_and_unreadable_records(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no record"):
        store.read_run(tmp_path / "nothing")
    with pytest.raises(BadInputError, match="no record"):
        store.read_run(tmp_path)
    (tmp_path / "run.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInputError, match="cannot read"):
        store.read_run(tmp_path)


def test_previous_runs_are_finished_ones_of_this_machine_and_verb(tmp_path: Path) -> None:
    def keep(name: str, **changes: object) -> None:
        store.RunDirectory.create(made_run(**{"status": "finished", **changes}), tmp_path / name)

    keep("b", started="2024-01-01T00:00:00Z")
    keep("a", started="2024-02-02T00:00:00Z")
    keep("other-verb", verb="study")
    keep("other-machine", machine={"id": "m2"})
    keep("unfinished", status="interrupted")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "run.json").write_text("{")
    found = store.previous_runs("probe", "m1", tmp_path)
    assert [path.name for path, _ in found] == ["b", "a"]


def test_older_records_of_few_repeats_have_no_interval() -> None:
    point = LatencyPoint(
        region_bytes=4096, **figure_fields(Origin.MEASURED, {"latency_ns": median([80.0] * 6)})
    )
    assert point.interval("latency_ns") == (80.0, 80.0)
    assert interval_of(point, "latency_ns") == "80 ns"
    point.provenance["latency_ns"].samples = 5
    assert point.intervals["latency_ns"] == (80.0, 80.0), "as an older version wrote it"
    assert point.interval("latency_ns") is None
    assert interval_of(point, "latency_ns") == "5 repeats"
