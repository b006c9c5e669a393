"""Texts and charts of the sections of the probes in depth."""

from __future__ import annotations

import pytest

import factories
from nearfar.profiles import load_profile
from nearfar.records.run import Sections
from nearfar.report.html.page import render
from nearfar.report.html.section import Cell, Context, heated
from nearfar.report.html.sections import (
    _published,
    access,
    latency,
    loaded,
    parallelism,
    persistence,
    tails,
)
from nearfar.units import GIB, KIB


def _context(**sections: object) -> Context:
    return Context(factories.study(sections=Sections.model_validate(sections)))


def test_a_limit_that_was_not_reached_is_not_called_one() -> None:
    assert "may be higher" not in parallelism.finding(factories.parallelism(limit=10))
    assert "may be higher" in parallelism.finding(factories.parallelism(limit=16))


def test_interleaving_is_reported_only_if_a_stride_shows_it() -> None:
    assert "no interleaving" in access.finding(factories.access())
    assert "Strides of 4 KiB deviate" in access.finding(factories.access(interleave=4 * KIB))


def test_every_access_is_in_a_matrix() -> None:
    result = factories.access()
    made = access.section(_context(access=result))
    assert made is not None
    matrices = [table for table in made.tables if table.caption.startswith("Bandwidth with")]
    shown = [
        cell for table in matrices for row in table.rows for cell in row if cell.heat is not None
    ]
    assert len(shown) == len(result.points) + 1, "and reads at the stride of the other mixes"
    assert [table.folded for table in matrices] == [False, True], "all threads first"


def test_load_is_reported_from_idle_to_full() -> None:
    found = loaded.finding(factories.loaded())
    assert found.startswith("A load on dram takes 92.1 ns without traffic")
    assert "at 19.3 GB/s (reads)" in found
    assert "(1:1 mix)" in found


def test_tails_report_the_subtracted_overhead() -> None:
    result = factories.tails()
    assert "p99.99 is 3.1 µs" in tails.finding(result)
    assert any("20 ns" in note for note in tails.notes(result))


def test_emulated_persistence_says_so_everywhere() -> None:
    result = factories.persistence()
    assert "(emulated)" in persistence.finding(result)
    made = persistence.section(_context(persistence=result))
    assert made is not None
    assert all("emulated" in table.caption for table in made.tables if not table.folded)
    page = render(factories.study(sections=Sections(persistence=result)))
    assert 'class="badge measured"' not in page[: page.index("<footer>")]


def test_stalls_are_reported() -> None:
    result = factories.persistence()
    assert result.overwrite is not None
    assert "every 16,000 stores" in persistence.overwriting(result)
    result.overwrite.stall_ns = 0.0
    assert "never stalled" in persistence.overwriting(result)


def test_published_lines_are_the_shipped_figures() -> None:
    lines = {line.name: line for line in _published.latency_lines(4 * KIB, GIB)}
    assert {line.kind for line in lines.values()} == {"published"}
    curve = load_profile("optane-100-lens").curve("read_latency_by_region_ns", block_bytes=64)
    kept = [point for point in curve if 4 * KIB <= point[0] <= GIB]
    assert [(spot.x, spot.value) for spot in lines["optane-100-lens"].spots] == kept
    level = load_profile("cxl-asic").scalar("read_latency_ns")
    assert {spot.value for spot in lines["cxl-asic"].spots} == {level}


def test_every_published_line_names_its_source() -> None:
    made = latency.section(_context(latency=factories.latency()))
    assert made is not None
    for line in _published.latency_lines(4 * KIB, GIB):
        assert any(line.name in note and "not measured here" in note for note in made.notes), (
            line.name
        )


@pytest.mark.parametrize(("value", "heat"), [(1.0, 0), (10.0, 50), (100.0, 100)])
def test_heat_is_logarithmic(value: float, heat: int) -> None:
    assert heated(Cell("x"), value, 1.0, 100.0).heat == heat


def test_equal_figures_have_no_heat() -> None:
    assert heated(Cell("x"), 5.0, 5.0, 5.0).heat == 0
