"""Which figures of a record are compared with an earlier one's, and what the page says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import factories
from nearfar.comparison.matching import compare_runs
from nearfar.records.figures import Origin
from nearfar.records.numbers import Quantity, numbers
from nearfar.records.run import Sections
from nearfar.report.html.page import render
from nearfar.report.html.section import Context
from nearfar.report.html.sections import changes
from pages import Page


def test_changes_list_moved_and_agreeing_figures() -> None:
    now, before = factories.study(), factories.earlier()
    found = {changes.name(c.now): c for c in compare_runs(now, before).changes}
    moved = found["latency: dram, 4 KiB pages, block 64 B, region 4 KiB"]
    assert moved.ratio() == pytest.approx(1 / 1.2)
    assert moved.agree() is False
    assert found["bandwidth: dram, read, 2 threads"].agree() is True
    assert found["stream triad best bandwidth: dram, 2 threads"].ratio() == 1.0
    assert not any(name.startswith("mapped") for name in found), "was not measured before"
    section = changes.section(Context(now, [(Path("old"), before)]))
    assert section is not None
    assert "72 differ" in section.finding


def _agreeing(samples: int, statistic: str = "median") -> str:
    """The finding of a run against an equal one, of figures with that many repeats."""
    before = factories.study(sections=Sections(bandwidth=factories.study().sections.bandwidth))
    assert before.sections.bandwidth is not None
    for point in before.sections.bandwidth.points:
        for entry in point.provenance.values():
            entry.samples, entry.statistic = samples, statistic
        point.intervals = point.intervals if samples else {}
    now = before.model_copy(update={"started": "2030-01-01T00:00:00Z"})
    section = changes.section(Context(now, [(Path("x"), before)]))
    assert section is not None
    return section.finding


def test_agreement_is_claimed_only_of_figures_with_intervals() -> None:
    assert "all agree within their intervals" in _agreeing(9)
    assert "all are equal" in _agreeing(0, "model")
    assert "none can be judged" in _agreeing(3)


def test_changes_of_noisy_runs_are_not_headlined() -> None:
    calm, loud, old = factories.study(), factories.noisy(), factories.earlier()
    loud_old = old.model_copy(update={"noise": loud.noise})
    for now, before, start in (
        (loud, old, "This run was too disturbed to show a change."),
        (calm, loud_old, "The earlier run was too disturbed to show a change."),
        (loud, loud_old, "Both runs were too disturbed to show a change."),
    ):
        section = changes.section(Context(now, [(Path("old"), before)]))
        assert section is not None
        assert section.finding.startswith(start)
        assert "differ by more" not in section.finding


def test_measured_is_never_compared_with_emulated() -> None:
    now = factories.study(sections=Sections(latency=factories.latency()))
    before = factories.study(sections=Sections(latency=factories.latency()))
    assert before.sections.latency is not None
    for curve in before.sections.latency.curves:
        for point in curve.points:
            point.provenance["latency_ns"].origin = Origin.EMULATED
    assert compare_runs(now, before).changes == []


def test_requested_values_are_conditions() -> None:
    found = list(numbers(factories.study().sections))
    assert not {"share", "offered_bytes_per_s"} & {n.key for n in found}
    assert all(n.provenance for n in found if isinstance(n, Quantity) and n.key != "worst_error")
    tails = [dict(n.conditions)["share"] for n in found if n.path == "tails/points"]
    assert tails == [0.5, 0.9, 0.99, 0.999, 0.9999]
    offered = {
        dict(n.conditions).get("offered_bytes_per_s") for n in found if n.path == "loaded/points"
    }
    assert {None, 0.0, 4e9} <= offered


def test_counted_numbers_with_an_origin_are_figures_and_hide_no_match() -> None:
    """As newer records keep them; in older ones both are settings, and neither lacks an origin."""
    now, before = factories.study(), factories.study()
    last_cache, reported = now.sections.latency, now.sections.persistence
    assert last_cache is not None
    assert reported is not None
    assert reported.overwrite is not None
    old = [n for n in numbers(before.sections) if isinstance(n, Quantity)]
    assert not {"effective_last_cache_bytes", "stalls", "low", "high"} & {n.key for n in old}
    entry = reported.overwrite.provenance["latency_ns"]
    last_cache.provenance["effective_last_cache_bytes"] = entry
    reported.overwrite.provenance["stalls"] = entry
    reported.overwrite.intervals["stalls"] = (4, 6)
    found = {n.key: n for n in numbers(now.sections) if isinstance(n, Quantity)}
    assert found["stalls"].interval == (4, 6)
    assert found["effective_last_cache_bytes"].provenance == entry
    alone = compare_runs(now, before)
    assert alone.only_before == []
    assert {n.key for n in alone.only_now} == {"effective_last_cache_bytes", "stalls"}
    page = Page(render(now)).text()
    assert "5 4 – 6" in page


def test_figures_in_depth_match_whatever_was_chosen_or_counted() -> None:
    now, before = factories.study(), factories.study()
    assert before.sections.tails is not None
    assert before.sections.access is not None
    assert before.sections.persistence is not None
    assert before.sections.persistence.overwrite is not None
    before.sections.tails.region_bytes *= 2
    before.sections.access.interleave_bytes = 4096
    before.sections.persistence.overwrite.stalls += 1
    found = compare_runs(now, before)
    assert found.only_now == found.only_before == []
    named = [changes.name(change.now) for change in found.changes]
    assert len(set(named)) == len(named), "two figures share a name"
    assert "tails latency: dram, region 256 MiB, p99.9" in named
    assert "parallelism: dram, region 256 MiB" in named
