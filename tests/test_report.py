"""The HTML page: whole, self-contained, escaped, and complete to the last number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import factories
from nearfar.cli.app import main
from nearfar.errors import MachineError
from nearfar.records.numbers import Quantity, SettingNumber, numbers
from nearfar.records.run import Run, Sections, Skipped
from nearfar.report.html.answers import on_far_memory, what_next
from nearfar.report.html.page import render, write_report
from nearfar.report.html.section import Context
from nearfar.report.html.sections import latency, mapped, stream
from nearfar.report.wording import format_quantity
from pages import Page


@pytest.fixture(scope="module")
def study_page() -> str:
    return render(factories.study(), [(Path("nearfar-runs/earlier"), factories.earlier())])


def test_a_tier_on_small_pages_is_compared_with_small_pages() -> None:
    run = factories.study(sections=Sections(latency=factories.latency(("dram", "shm:"))))
    assert run.sections.latency is not None
    kept = [c for c in run.sections.latency.curves if (c.tier, c.pages) != ("shm:", "thp")]
    run.sections.latency.curves = kept
    for curve in kept:
        curve.pages = "system" if curve.tier == "shm:" else curve.pages
    kept[1].points = kept[1].points[:-1]  # a disturbed machine measures fewer regions
    (said,) = on_far_memory(run)
    assert re.match(r"shm: \(pages of the system's choice\): .* a load from \d+ MiB, ", said)
    assert said.endswith(" 1.12 × of dram (4 KiB pages).")


def test_page_is_well_formed_and_holds_every_section(study_page: str) -> None:
    page = Page(study_page)
    wanted = [
        "machine",
        "latency",
        "blocks",
        "tails",
        "parallelism",
        "loaded",
        "bandwidth",
        "access",
        "stream",
        "persistence",
        "mapped",
        "changes",
        "findings",
        "provenance",
    ]
    assert [name for name in page.ids if name in wanted] == wanted
    assert len(page.ids) == len(set(page.ids)), "two pictures share a name"
    assert len(study_page.encode()) < 2_000_000


def test_page_loads_nothing_and_runs_nothing(study_page: str) -> None:
    page = Page(study_page)
    assert "script" not in page.tags
    assert page.handlers == []
    assert [load for load in page.loads if not load.startswith(("#", "data:"))] == []
    assert re.findall(r"url\((?!#)", study_page) == []
    assert "@import" not in study_page
    addresses = set(re.findall(r"https?://[^\"' <]+", study_page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_each_picture_is_there_in_two_widths(study_page: str) -> None:
    page = Page(study_page)
    figures = page.tags.count("figure")
    # one a section, the machine and what changed included, but two of persistence and four of the
    # mapped file
    assert figures == 16
    assert page.tags.count("svg") == 2 * figures


@pytest.mark.parametrize("key", ["GB/s", "ns", "256 MiB"])
def test_axes_carry_units(study_page: str, key: str) -> None:
    drawn = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", study_page))
    assert key in drawn


def test_strings_of_a_record_stay_strings() -> None:
    page = Page(render(factories.hostile()))
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert page.handlers == []
    assert "<script>alert('nearfar')</script>" in page.text()


def _is_observed(member: Any) -> bool:
    """A drop, the series of one thread, or the error of a prediction."""
    seen_once = {"involuntary_switches", "end_s", "error", "mean_error"}
    return isinstance(member, dict) and bool(seen_once & member.keys())


def _numbers_of(value: Any, key: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for name, member in value.items():
            if name not in ("intervals", "provenance"):
                yield from _numbers_of(member, name)
    elif isinstance(value, list) and any(_is_observed(member) for member in value):
        yield key, len(value)  # one row for the list
    elif isinstance(value, list):
        for member in value:
            yield from _numbers_of(member, key)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield key, value


@pytest.mark.parametrize(
    "run",
    [factories.study(), factories.oversubscribed(), factories.together(), factories.allocators()],
)
def test_provenance_covers_every_number(run: Run) -> None:
    """The walk, done again on the plain document, finds no number that the first one missed."""
    document = run.sections.model_dump(mode="json", exclude_none=True)
    reported: set[tuple[str, str]] = set()
    quantities = []
    for number in numbers(run.sections):
        reported |= {(key, part) for key, v in number.conditions for part in str(v).split(", ")}
        reported.add((number.key, str(number.value)))
        if isinstance(number, Quantity):
            quantities.append((number.key, number.value))
    assert [n for n in _numbers_of(document) if (n[0], str(n[1])) not in reported] == []
    keys = (
        "_ns",
        "bandwidth_bytes_per_s",
        "ratio",
        "faults_per_gib",
        "parallelism",
        "writes_between",
    )
    expected = [n for n in _numbers_of(document) if n[0].endswith(keys)]
    found = [n for n in quantities if n[0].endswith(keys)]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("run", [factories.study(), factories.together()])
def test_provenance_table_has_a_row_for_each_figure(run: Run) -> None:
    found = list(numbers(run.sections))
    page = render(run)
    table = page[page.index('<section id="provenance"') :]
    rows = table[: table.index("</section>")].count("<tr>") - table.count("<thead>")
    assert rows == len(found)
    assert sum(isinstance(n, SettingNumber) for n in found) > 0


def test_a_figure_without_provenance_is_called_so() -> None:
    run = factories.study()
    assert run.sections.latency is not None
    run.sections.latency.curves[0].points[-1].provenance.clear()
    assert "of unrecorded origin" in Page(render(run)).text()


def test_findings_are_computed_from_the_figures() -> None:
    slow, fast = latency_finding(1.2), latency_finding(1.0)
    assert fast == (
        "A load from 768 MiB, which misses all caches, takes 91.5 ns on dram with transparent "
        "huge pages; with 4 KiB pages it takes 122 ns, 34 % more."
    )
    assert "110 ns" in slow


def latency_finding(factor: float) -> str:
    return latency.finding(factories.latency(factor=factor))


def test_a_curve_that_ends_in_the_cache_is_not_called_memory() -> None:
    result = factories.latency()
    result.effective_last_cache_bytes = result.curves[0].points[-1].region_bytes
    assert "too little to miss all caches" in latency.finding(result)


def test_emulated_figures_say_so() -> None:
    result = factories.latency(("shm:",))
    assert "(emulated)" in latency.finding(result)
    page = render(factories.study(sections=Sections(latency=result)))
    assert 'class="badge emulated"' in page[: page.index("<footer>")]
    assert 'class="badge measured"' not in page[: page.index("<footer>")]


def test_emulated_rows_say_so_in_the_picture() -> None:
    speeds = factories.bandwidth(("shm:",))
    page = render(factories.study(sections=Sections(bandwidth=speeds)))
    assert "copy, 2 threads (emulated)" in page


def test_oversubscription_and_small_arrays_are_noted() -> None:
    text = Page(render(factories.oversubscribed())).text()
    assert "more threads than CPUs" in text
    assert "in_cache" in text
    assert "write-allocate" in text


def test_slower_and_faster_follow_the_interval() -> None:
    result = factories.mapped()
    ratio = next(
        r
        for r in result.ratios
        if (r.warmth, r.pattern, r.direction, r.against) == ("warm", "random", "read", "buffered")
    )
    for value, interval, words in (
        (0.5, (0.4, 0.6), "is slower than"),
        (1.02, (0.9, 1.1), "is as fast as"),
        (1.4, (0.57, 27), "may be faster or slower than"),
        (2.0, (1.8, 2.2), "is faster than"),
    ):
        ratio.ratio, ratio.intervals["ratio"] = value, interval
        reported = mapped.finding(result)
        assert words in reported
        assert ("too wide to decide" in reported) == ("may be" in words)
    ratio.provenance["ratio"].samples = 5
    reported = mapped.finding(result)
    assert "may be faster or slower than" in reported
    assert "2.00 × its rate (too few repeats to decide)" in reported


def test_a_mapped_picture_names_its_own_blocks_only() -> None:
    result = factories.mapped()
    for point in result.points:
        if point.pattern == "sequential":
            point.block_bytes = 128 * 1024
    section = mapped.section(Context(factories.study(sections=Sections(mapped=result))))
    assert section is not None
    assert [figure.caption for figure in section.figures] == [
        "Sequential reads, blocks of 128 KiB",
        "Random reads, blocks of 4 KiB",
        "Sequential writes, blocks of 128 KiB",
        "Random writes, blocks of 4 KiB",
    ]


def test_page_faults_are_shown_next_to_their_method() -> None:
    result = factories.mapped()
    section = mapped.section(Context(factories.study(sections=Sections(mapped=result))))
    assert section is not None
    (table,) = [table for table in section.tables if "Page faults per GiB" in table.columns]
    assert len(table.rows) == len(result.points)
    labels = [tuple(cell.text for cell in row[:2]) for row in table.rows]
    assert len(set(labels)) == len(labels)


def test_the_first_screen_says_how_fast_how_far_how_sure_and_what_next() -> None:
    page = render(factories.judged())
    first = Page(page[: page.index("</header>")] + "</header></body></html>").text()
    wanted = [
        "How fast",
        "Memory latency",
        "How far",
        "How sure",
        "Steady, rely on these",
        "Disturbed, repeat on an idle machine",
        "bandwidth: wide",
        "Unusable",
        "What next",
        "nearfar advise --",
    ]
    assert sorted(wanted, key=first.index) == wanted
    text = Page(page).text()
    assert "2 figures: 1 steady, 1 disturbed." in text
    assert "3 disturbed epochs did not count" in text


def test_disturbed_advice_names_the_command_that_repeats_it() -> None:
    run = factories.advised()
    run.noise = factories.judged().noise
    assert what_next(run)[0][0] == "nearfar advise -- ./goprog --its-own-flag"
    assert run.sections.advice is not None
    run.sections.advice.pid = 4711
    assert what_next(run)[0][0] == "nearfar advise --pid 4711"


def test_a_card_of_a_disturbed_section_says_so() -> None:
    page = render(factories.judged())
    cards = page[page.index('<div class="cards">') : page.index('<div class="answers">')]
    assert re.findall(r'class="tone (\w+)">(\w+)<', cards) == [("warn", "disturbed")] * 2


def test_findings_of_a_disturbed_section_are_marked() -> None:
    page = render(factories.judged())
    for section, word in (("bandwidth", "disturbed"), ("stream", "unusable")):
        finding = page[page.index(f'<section id="{section}">') :].partition('<p class="finding">')[
            2
        ]
        assert f">{word}</span></p>" in finding[: finding.index("</p>") + 4]
    assert page.count(">disturbed</span>") >= 4  # cards, the list at the top, the section


def test_unfinished_and_noisy_runs_say_so_on_top() -> None:
    stopped = Page(render(factories.interrupted())).text()
    assert stopped.index("Interrupted") < stopped.index("Latency of a load")
    assert "interrupted before it began" in stopped
    noisy = Page(render(factories.noisy())).text()
    assert (
        noisy.index("Disturbed")
        < noisy.index("other processes used 0.97")
        < noisy.index("Memory latency")
    )


def test_a_run_without_sections_still_makes_a_page() -> None:
    run = factories.study(
        sections=Sections(),
        machine={},
        findings=[],
        noise=None,
        skipped=[Skipped(section="latency", what="all", why="no memory")],
    )
    page = Page(render(run))
    assert page.ids == ["topic-how-sure", "skipped"]
    assert "no memory" in page.text()


def test_stream_sweep_is_not_shown_twice() -> None:
    result = factories.stream((1, 2))
    assert [len(run.cpus) for run in stream.runs(result)] == [1, 2]
    result.sweep = []
    assert [len(run.cpus) for run in stream.runs(result)] == [2]


def test_the_best_rate_is_never_shown_with_an_interval() -> None:
    result = factories.stream((1, 2))
    best = "best_bandwidth_bytes_per_s"
    assert best not in result.triad.intervals
    for run in (result, *result.sweep):  # as old records keep it: from the median to the best
        for _, kernel in stream.kernels(run):
            kernel.intervals[best] = (kernel.median_bandwidth_bytes_per_s, getattr(kernel, best))
    kept = [n for n in numbers(Sections(stream=result)) if isinstance(n, Quantity)]
    assert {n.key for n in kept if n.interval} == {"median_bandwidth_bytes_per_s"}
    section = stream.section(Context(factories.study(sections=Sections(stream=result))))
    assert section is not None
    assert section.figures[0].caption.startswith("Median rate on dram; bars are 95 % intervals.")
    assert section.finding == (
        "STREAM triad runs at 16.6 GB/s (best 17 GB/s) with 2 threads on dram, "
        "1.68 times what one thread gets."
    )
    median = f">{format_quantity(best, result.copy_.median_bandwidth_bytes_per_s)}<"
    assert median in section.figures[0].wide
    for row in section.tables[0].rows:
        assert (row[3].detail != "", row[4].detail) == (True, "")


def test_write_report_replaces_and_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("old")
    path = write_report(tmp_path, factories.interrupted())
    assert path == tmp_path / "report.html"
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_write_report_where_there_is_no_directory(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="cannot write"):
        write_report(tmp_path / "missing", factories.interrupted())


def test_verb_compares_with_the_previous_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, run in (("a", factories.earlier()), ("b", factories.study())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(run.model_dump_json(exclude_none=True))
    out = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "b"), "--out", str(out)]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    assert 'id="changes"' in out.read_text()
    assert not (tmp_path / "b" / "report.html").exists()
    assert main(["report", str(tmp_path / "a" / "run.json")]) == 0
    assert 'id="changes"' not in (tmp_path / "a" / "report.html").read_text()


def test_verb_without_permission_names_the_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.json").write_text(factories.interrupted().model_dump_json(exclude_none=True))
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "no" / "page.html")]) == 3
    assert "--out FILE" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["show", "report"])
@pytest.mark.parametrize("content", [None, "{", '{"schema_version": 99}', '{"schema_version": 1}'])
def test_bad_record_is_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    assert main([verb, str(tmp_path)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    lines = output.err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("nearfar: ")
    assert lines[1].startswith("  next: ")
    assert sorted(file.name for file in tmp_path.iterdir()) == (["run.json"] if content else [])
