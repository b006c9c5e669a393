"""`nearfar show`, and the tables that the measuring verbs print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType
from syrupy.assertion import SnapshotAssertion

import factories
from nearfar.cli.app import main
from nearfar.cli.output import Output, show_measured
from nearfar.profiles import host_names, load_host, load_profile, profile_names
from nearfar.profiles.sheets import write_profile
from nearfar.records.noise import Reliability, SeriesVerdict
from nearfar.records.profile import Profile
from nearfar.records.run import Run, Sections
from nearfar.report.console import print_result
from nearfar.report.html.verdict import marks
from nearfar.report.terminal import allocators, depth, results, summary, together
from nearfar.report.terminal import record as record_tables
from nearfar.report.terminal.record import _SECTIONS, cautions
from nearfar.workflows.recording import Measured


def printed(what: RenderableType, width: int = 100) -> str:
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(what)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def save(run: Run, directory: Path) -> str:
    (directory / "run.json").write_text(run.model_dump_json(indent=1, exclude_none=True))
    return str(directory)


@pytest.mark.parametrize(
    "name", ["study", "interrupted", "noisy", "oversubscribed", "together", "allocators"]
)
def test_record_in_the_terminal(name: str, snapshot: SnapshotAssertion) -> None:
    run: Run = getattr(factories, name)()
    assert printed(record_tables.record(run)) == snapshot


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("name", ["study", "noisy", "judged", "together", "interrupted"])
def test_the_summary_of_a_study_has_30_lines_at_most(name: str, width: int) -> None:
    text = printed(summary.summary(getattr(factories, name)(), Path("runs/a-study")), width)
    assert len(text.splitlines()) <= 28  # report and record follow on stderr
    assert "nearfar show runs/a-study" in text
    assert "advise" in text


def test_the_summary_shows_verdicts() -> None:
    text = printed(summary.summary(factories.judged(), Path("a")))
    assert "Steady, rely on these: latency." in text
    assert "Disturbed, repeat on an idle machine: bandwidth." in text
    assert "  · stream: threads ran only 40% of their time" in text


def test_figures_that_cannot_be_relied_on_are_marked_where_they_stand() -> None:
    text = printed(record_tables.record(factories.judged()))
    disturbed = "Disturbed, repeat on an idle machine: wide\nBandwidth  ["
    assert disturbed in text
    assert "Unusable, measure again: threads ran only 40% of their time\nSTREAM  [" in text
    assert text.index("\n\nLatency of a load") < text.index(disturbed)


def test_the_figures_of_an_older_record_are_all_marked() -> None:
    run = factories.noisy()  # with one verdict on all of it
    assert set(marks(run)) == {name for name, held in run.sections if held is not None}
    run = factories.judged()
    assert run.noise is not None
    run.sections = Sections(stream=factories.stream())
    run.noise.judged = run.noise.judged[-1:]
    run.noise.judged[0].section = "stream copy"  # a series, not a section
    assert [mark.word for mark in marks(run).values()] == ["unusable"]


def test_steady_figures_of_few_repeats_are_not_to_be_relied_on() -> None:
    run = factories.judged()
    assert run.sections.latency is not None
    for curve in run.sections.latency.curves:
        for point in curve.points:
            point.provenance["latency_ns"].samples = 3
    text = printed(summary.summary(run, Path("a")))
    assert "rely on these" not in text
    assert "Steady, but of too few repeats for an interval: latency." in text


def test_a_verb_that_measures_marks_its_figures_quiet_or_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = factories.judged()
    result = factories.stream()
    run.sections = Sections(stream=result)
    assert run.noise is not None
    run.noise.judged = run.noise.judged[-1:]
    done = Measured(result, run, tmp_path)
    show_measured(done, results.stream(result), Output(quiet=True))
    output = capsys.readouterr()
    assert output.out.startswith("Unusable, measure again: threads ran only 40% of their time\n")
    assert output.err == ""
    show_measured(done, results.stream(result), Output(is_script=True))
    output = capsys.readouterr()
    assert "Unusable" not in output.out
    assert output.err.startswith("Unusable, measure again: threads ran only 40% of their time\n")


def test_advice_says_which_of_its_measurements_was_disturbed() -> None:
    run = factories.advised()
    rows = (("advice", "the program", "steady"), ("loaded latency dram", "", "disturbed"))
    run.noise = factories.judged().noise
    assert run.noise is not None
    run.noise.judged = [
        SeriesVerdict(
            section=section,
            series=series or section,
            verdict=Reliability(verdict),
            reasons=["other processes used 0.9 CPUs"] * (verdict != "steady"),
        )
        for section, series, verdict in rows
    ]
    assert [str(line) for line in cautions(run)] == [
        "loaded latency dram: Disturbed, repeat on an idle machine: other processes used 0.9 CPUs"
    ]


def test_a_file_has_the_whole_lines_of_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    run = factories.judged()
    assert run.noise is not None
    reason = "a reason that is longer than a line, " * 5 + "and has an end"
    run.noise.judged[-1].reasons = [reason]
    print_result(summary.summary(run, Path("a")))
    printed_lines = capsys.readouterr().out.splitlines()
    assert f"  · stream: {reason}" in [line.rstrip() for line in printed_lines]
    terminal = Console(width=80, color_system=None, force_terminal=True)
    with terminal.capture() as capture:
        terminal.print(summary.summary(run, Path("a")))
    assert "…" in capture.get()
    assert reason not in capture.get()


def test_every_section_is_shown() -> None:
    assert set(_SECTIONS) == set(Sections.model_fields)


def test_a_prediction_is_shown_until_its_run_is_there(snapshot: SnapshotAssertion) -> None:
    compete, pipeline = factories.compete_foretold(), factories.pipeline_foretold()
    predicted: dict[str, Any] = {
        "compete_forecast": compete.forecast,
        "stencil_split": factories.stencil_split(),
        "pipeline_forecast": pipeline.forecast,
    }
    measured: dict[str, Any] = {
        "compete": compete,
        "stencil": factories.stencil(),
        "pipeline": pipeline,
    }
    run = factories.interrupted()
    run.sections = Sections(**predicted)
    assert printed(record_tables.record(run)) == snapshot
    run.sections = Sections(**measured)
    without = printed(record_tables.record(run))
    run.sections = Sections(**predicted, **measured)
    assert printed(record_tables.record(run)) == without


@pytest.mark.parametrize("width", [80, 100])
def test_tables_fit(width: int) -> None:
    for result in (
        results.latency(factories.latency()),
        results.bandwidth(factories.bandwidth()),
        results.stream(factories.stream()),
        results.mapped(factories.mapped()),
        depth.parallelism(factories.parallelism()),
        depth.blocks(factories.blocks()),
        depth.access(factories.access()),
        depth.persistence(factories.persistence()),
        depth.loaded(factories.loaded()),
        depth.tails(factories.tails()),
        together.compete(factories.compete(4)),
        together.compete(factories.compete_foretold()),
        together.stencil(factories.stencil()),
        together.stencil(factories.stencil(far_rows=0)),
        together.pipeline_run(factories.pipeline()),
        together.pipeline_run(factories.pipeline_foretold()),
        together.pipeline_run(factories.pipeline(near_only=True)),
        allocators.malloc(factories.malloc()),
    ):
        lines = printed(result, width).splitlines()
        assert max(map(len, lines)) <= width
        assert not any("…" in line for line in lines)


def test_every_figure_of_a_curve_is_printed() -> None:
    result = factories.latency()
    lines = printed(results.latency(result)).splitlines()
    assert sum(line.count(" ns)") for line in lines) == sum(len(c.points) for c in result.curves)


def test_markup_in_a_record_is_printed_as_it_is() -> None:
    shown = results.mapped(factories.mapped("[red]/dev/null[/red]"))
    assert "[red]/dev/null[/red]" in printed(shown)


def test_show_prints_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", save(factories.noisy(), tmp_path)]) == 0
    output = capsys.readouterr()
    assert "Disturbed" in output.out
    assert output.err == ""
    assert "\x1b" not in output.out


def test_json_on_stdout_is_the_run_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = factories.study()
    assert main(["show", save(run, tmp_path), "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((tmp_path / "run.json").read_text())
    assert Run.model_validate(document) == run


@pytest.mark.parametrize("name", ["optane-100-lens", "xeon-5218r", "pcm-snu-cycles", "ucy-optane"])
def test_profile_in_the_terminal(
    name: str, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    assert main(["show", name]) == 0
    assert capsys.readouterr().out == snapshot


@pytest.mark.parametrize("name", [*profile_names(), *host_names()])
def test_every_profile_fits_and_nothing_is_cut(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert not any("…" in line for line in lines)


def test_json_of_a_profile_is_the_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "hbm", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert Profile.model_validate(document) == load_profile("hbm")


def test_all_points_of_a_curve_are_shown_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "optane-100"
    profile = load_profile(name)
    longest = max(len(figure.points or []) for figure in profile.figures.values())
    assert longest > 6
    assert main(["show", name]) == 0
    cut = capsys.readouterr().out
    assert "nearfar show --all" in cut
    assert main(["show", name, "--all"]) == 0
    whole = capsys.readouterr().out
    assert "shown" not in whole
    assert len(whole.splitlines()) > len(cut.splitlines())


def test_a_file_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_profile(load_host("snu-2014"), tmp_path / "mine.toml")
    assert main(["show", str(tmp_path / "mine.toml")]) == 0
    assert "2.7 GHz" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("latency.curves.0.points.0.latency_ns", -1),
        ("latency.curves.0.points.0.region_bytes", 0),
        ("latency.curves.0.points.0.intervals.latency_ns.1", float("inf")),
        ("bandwidth.points", []),
        ("bandwidth.points.0.bandwidth_bytes_per_s", float("nan")),
        ("tails.points.0.share", 1.5),
    ],
)
@pytest.mark.parametrize("verb", ["show", "report"])
def test_impossible_figures_are_refused_by_name(
    verb: str, place: str, value: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(factories.study(), tmp_path)
    document = json.loads((tmp_path / "run.json").read_text())
    *way, last = (int(p) if p.isdigit() else p for p in ("sections." + place).split("."))
    member = document
    for step in way:
        member = member[step]
    member[last] = value
    (tmp_path / "run.json").write_text(json.dumps(document))
    assert main([verb, str(tmp_path)]) == 2
    assert f"is damaged at sections.{place}: " in capsys.readouterr().err


@pytest.mark.parametrize("place", ["later", "sections.latency.later"])
def test_a_key_of_a_newer_version_is_not_called_damage(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(factories.study(), tmp_path)
    document = json.loads((tmp_path / "run.json").read_text())
    document["nearfar_version"] = "99.1"
    *way, last = place.split(".")
    member = document
    for step in way:
        member = member[step]
    member[last] = 1
    (tmp_path / "run.json").write_text(json.dumps(document))
    assert main(["show", str(tmp_path)]) == 2
    printed = capsys.readouterr().err
    assert f"does not know: {place} (written by nearfar 99.1)" in printed
    assert "damaged" not in printed


def test_a_percentile_of_no_time_is_shown_and_drawn(tmp_path: Path) -> None:
    run = factories.study(sections=Sections(tails=factories.tails()))
    assert run.sections.tails is not None
    run.sections.tails.points[0].latency_ns = 0.0
    run.sections.tails.points[0].intervals["latency_ns"] = (0.0, 0.0)
    assert main(["show", save(run, tmp_path)]) == 0
    assert main(["report", str(tmp_path)]) == 0


def test_inaccessible_paths_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", refuse)
    assert main(["show", "/closed/run"]) == 2
    assert "cannot look at /closed/run: Permission denied" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["nothing", "none.toml", "."])
def test_invalid_subjects_are_refused(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["show", what]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "next:" in printed.err
