"""`nearfar show`, and the tables that the measuring verbs print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console, RenderableType
from syrupy.assertion import SnapshotAssertion

import factories
from nearfar.cli.main import main
from nearfar.records.run import Run
from nearfar.report import text


def printed(what: RenderableType, width: int = 100) -> str:
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(what)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def save(run: Run, directory: Path) -> str:
    (directory / "run.json").write_text(run.model_dump_json(indent=1, exclude_none=True))
    return str(directory)


@pytest.mark.parametrize("name", ["study", "interrupted", "noisy", "oversubscribed"])
def test_record_in_the_terminal(name: str, snapshot: SnapshotAssertion) -> None:
    run: Run = getattr(factories, name)()
    assert printed(text.record(run)) == snapshot


@pytest.mark.parametrize("width", [80, 100])
def test_tables_fit(width: int) -> None:
    for result in (
        text.latency(factories.latency()),
        text.bandwidth(factories.bandwidth()),
        text.stream(factories.stream()),
        text.mapped(factories.mapped()),
    ):
        lines = printed(result, width).splitlines()
        assert max(map(len, lines)) <= width
        assert not any("…" in line for line in lines)


def test_every_figure_of_a_curve_is_printed() -> None:
    result = factories.latency()
    lines = printed(text.latency(result)).splitlines()
    assert sum(line.count(" ns)") for line in lines) == sum(len(c.points) for c in result.curves)


def test_markup_in_a_record_is_printed_as_it_is() -> None:
    assert "[red]/dev/null[/red]" in printed(text.mapped(factories.mapped("[red]/dev/null[/red]")))


def test_show_prints_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", save(factories.noisy(), tmp_path)]) == 0
    output = capsys.readouterr()
    assert "Too noisy" in output.out
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
