"""The page of a program with thousands of sites: its work is not quadratic in the record."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import factories
from nearfar.records.advice import SiteAdvice
from nearfar.report.advice_words import site_name
from nearfar.report.html import section
from nearfar.report.html.page import render
from nearfar.report.html.section import Cell, Table
from nearfar.report.html.sections.advice import _spots
from nearfar.report.html.sections.provenance import MAX_ROWS
from nearfar.report.wording import axis_unit


def _visited(monkeypatch: pytest.MonkeyPatch, sites: int) -> tuple[int, str]:
    """Number of requests for the origin that all cells share, and the page."""
    asked = 0
    original = section._shared

    def counted(cells: object) -> object:
        nonlocal asked
        asked += 1
        return original(cells)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(section, "_shared", counted)
        page = render(factories.advised(sites))
    return asked, page


def test_a_page_of_many_sites_looks_at_its_tables_as_often_as_one_of_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, _ = _visited(monkeypatch, 30)
    many, page = _visited(monkeypatch, 400)
    assert many == few
    assert f"of which {MAX_ROWS} are shown; run.json has all" in page


def test_the_page_is_named_by_the_program_as_it_was_typed() -> None:
    page = render(factories.advised())
    assert "<title>./goprog --its-own-flag: nearfar advise</title>" in page
    assert "<h1>./goprog --its-own-flag</h1>" in page
    assert "<li>goprog started 2 threads.</li>" in page
    assert "Goprog" not in page


def test_a_sampled_run_has_estimates_and_no_policies() -> None:
    run = factories.advised()
    advice = run.sections.advice
    assert advice is not None
    traced = render(run)
    run.sections.advice = advice.model_copy(
        update={
            "method": "sampled",
            "fars": [far.model_copy(update={"policies": []}) for far in advice.fars],
        }
    )
    sampled = render(run)
    assert "Reads and writes are estimates." in sampled
    assert "Reads and writes are estimates." not in traced
    assert "kernels and hardware" not in sampled
    assert "Pages moved" not in sampled


def test_the_page_claims_nothing_about_memory_that_no_plan_can_move() -> None:
    run = factories.advised()
    advice = run.sections.advice
    assert advice is not None
    run.sections.advice = advice.model_copy(
        update={"method": "sampled", "pid": 7, "program": ["process 7"], "movable_bytes": 0}
    )
    page = render(run)
    assert "<h1>process 7</h1>" in page
    assert "everything far" in page
    for claim in (
        "Near memory to keep",
        "with the plan",
        "movable memory far",
        "knee 36 MiB",
        "Within",
    ):
        assert claim not in page, claim


def test_the_curve_is_a_staircase_from_1_with_a_marked_knee() -> None:
    page = render(factories.advised())
    assert page.count("knee 36 MiB") == 2  # in the wide and in the narrow picture
    labels = re.findall(r">(1|0|0\.5)</text>", page[page.index('id="advice"') :])
    assert "1" in labels
    assert "0.5" not in labels


def test_a_run_is_compared_with_runs_of_the_same_program_only() -> None:
    now = factories.advised()
    same = now.model_copy(update={"started": "2024-12-01T00:00:00Z"})
    other = same.model_copy(update={"arguments": {"program": ["./another"]}})
    assert 'id="changes"' in render(now, [(Path("same"), same)])
    assert 'id="changes"' not in render(now, [(Path("other"), other)])


@pytest.mark.parametrize(
    ("key", "greatest", "unit", "divisor"),
    [
        ("time_s", 0.02, "ms", 1e-3),
        ("latency_ns", 80.0, "ns", 1.0),
        ("ratio", 2.0, "", 1.0),
        ("bandwidth_bytes_per_s", 12e9, "GB/s", 1e9),
        ("near_bytes", 4096, "KiB", 1024.0),
    ],
)
def test_an_axis_has_the_unit_of_its_labels(
    key: str, greatest: float, unit: str, divisor: float
) -> None:
    found_unit, found_divisor = axis_unit(key, greatest)
    assert found_unit == unit
    assert found_divisor == pytest.approx(divisor)


def test_the_origins_of_a_table_are_found_once() -> None:
    table = Table(["first", "second"], [[Cell("a"), Cell("1")]])
    assert table.column_origins is table.column_origins


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (
            "std::vector<int, std::allocator<int> >::push_back(int&&)",
            "std::vector::push_back",
        ),
        ("main", "main"),
        ("operator<(a, b)", "operator<"),
        ("bool ns::operator<<(a, b) const", "ns::operator<<"),
        ("std::pair<int, int>* (anonymous namespace)::f<int>(int (*)())", "anonymous::f"),
    ],
)
def test_a_site_is_named_without_template_arguments(function: str, named: str) -> None:
    site = SiteAdvice.model_construct(at="v.h:9", functions=[f"{function} v.h:9"])
    assert site_name(site) == f"{named}  v.h:9"


def test_calls_within_the_library_are_one_name_behind_the_program_s_own() -> None:
    functions = [
        "std::__new_allocator<int>::allocate(unsigned long, void const*) new_allocator.h:137",
        "std::_Node<long>* std::_Table<long>::_M_create_node<int>(int&&) hashtable_policy.h:19",
        "std::unordered_map<long, long, std::less<long> >::operator[](long&&) unordered_map.h:984",
        "count_words(char const*) words.cpp:6",
        "std::thread::_M_run() std_thread.h:210",
    ]
    site = SiteAdvice.model_construct(at="new_allocator.h:137", functions=functions)
    assert site_name(site) == (
        "count_words  words.cpp:6 (unordered_map::operator[]: _M_create_node)"
    )
    within = SiteAdvice.model_construct(at="new_allocator.h:137", functions=functions[:1])
    assert site_name(within) == "std::__new_allocator::allocate  new_allocator.h:137"


def test_the_curve_falls_where_the_plan_has_its_memory() -> None:
    """At the bytes that a choice keeps near, not at the budget that it was chosen for."""
    advice = factories.advised().sections.advice
    assert advice is not None
    model = advice.curve[0]
    choices = [(0, 0, 1.4), (10 << 20, 0, 1.4), (40 << 20, 30 << 20, 1.0)]
    points = [
        model.model_copy(
            update={"near_budget_bytes": at, "near_bytes": used, "slowdown": loss, "intervals": {}}
        )
        for at, used, loss in choices
    ]
    spots = _spots(advice.model_copy(update={"curve": points}), 50 << 20)
    assert [(spot.x, spot.value) for spot in spots] == [(0, 1.4), (30, 1.0), (50, 1.0)]
