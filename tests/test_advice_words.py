"""Names of sites in advice, and the command that it ends with."""

from __future__ import annotations

import shlex
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from nearfar.place import labels
from nearfar.place.sites import Frame, Site
from nearfar.records.advice import (
    CAPPED,
    AdviceResult,
    BudgetPoint,
    FarAdvice,
    SiteAdvice,
    WithinPoint,
)
from nearfar.records.figures import Origin, Provenance, claimed
from nearfar.records.profile import DISTURBED
from nearfar.report.advice_words import (
    apply_command,
    basis,
    finding,
    headline,
    mattering,
    site_name,
    warnings,
    whole_placements,
)
from nearfar.report.terminal.advising import _curve
from nearfar.report.terminal.layout import figure
from nearfar.verify.symbols import Call
from nearfar.workflows.advice_notes import on_wrappers

LOADER = Frame("/lib64/ld-linux-x86-64.so.2", "", 0x20)


def site(*frames: Frame) -> Site:
    return Site(0, "heap", frames, 1, 64, 64, 0, 0, 1.0)


def test_the_loader_names_no_site_of_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = {LOADER.place(): [Call("open_path", "elf/dl-cache.c:538")]}
    monkeypatch.setattr(labels, "inline_calls", lambda _: calls)
    program = Frame("/usr/bin/sort", "", 0x10)
    assert labels.labels_of([site(program, LOADER)]).at == {0: "sort+0x10"}
    assert labels.labels_of([site(LOADER)]).at == {0: "dl-cache.c:538"}


def test_sites_on_one_line_are_numbered_in_the_order_of_their_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`a = malloc(8), b = malloc(16);`, seen in the other order."""
    second, first = (Frame("/bin/two", "", offset) for offset in (0x30, 0x20))
    calls = {frame.place(): [Call("main", "src/two.c:4")] for frame in (first, second)}
    monkeypatch.setattr(labels, "inline_calls", lambda _: calls)
    found = labels.labels_of([site(second), replace(site(first), number=1)]).at
    assert found == {0: "two.c:4 (call 2)", 1: "two.c:4 (call 1)"}


def test_the_command_can_be_pasted_into_a_shell() -> None:
    program = ["sqlite3", ":memory:", ".read table.sql"]
    words = shlex.split(warnings(result(program=program, plan="an advice/sqlite3.plan"))[-1])
    assert words[words.index("--plan") + 1] == "an advice/sqlite3.plan"
    assert words[words.index("--") + 1 :][:3] == program


def test_the_command_reads_what_the_program_read() -> None:
    given = result(plan="p", program=["sqlite3", ":memory:"], standard_input="/tmp/my job.sql")
    assert "-- sqlite3 :memory: < '/tmp/my job.sql' applies the plan." in warnings(given)[-1]
    pipe = result(plan="p", standard_input="a pipe, which is not passed on")
    assert "<" not in warnings(pipe)[-1]


def test_a_plan_of_several_memories_is_for_the_first() -> None:
    fars = [FarAdvice.model_construct(far=name) for name in ("cxl-asic", "optane-100")]
    assert warnings(result(plan="p", fars=fars))[-1].endswith(
        "applies the plan, which is for cxl-asic."
    )


def test_an_interval_is_said_once() -> None:
    spans = {"slowdown_all_far": (1.1, 1.7), "slowdown_plan": (1.0, 1.1)}
    said = finding(result(slowdown_all_far=1.4, slowdown_plan=1.05, intervals=spans))
    assert said.count("1.10–1.70 ×") == 1
    assert "95 % intervals: with the plan 1.00–1.10 ×." in said


def test_a_site_that_hides_its_callers_is_called_a_wrapper() -> None:
    library = "/usr/lib/libsqlite3.so.0.8.6"
    wrapper = cost(
        0,
        1.0,
        kind="heap",
        at="libsqlite3.so.0.8.6+0xa7504",
        chain=[f"{library}+0xa7504"],
        functions=[],
        allocations=2_000_000,
    )
    (said,) = on_wrappers(FarAdvice.model_construct(sites=[wrapper]))
    assert "the call libsqlite3.so.0.8.6+0xa7504 makes 100% of all allocations" in said
    assert f"`dpkg -S {library}`" in said
    halves = [
        wrapper.model_copy(update={"at": f"{wrapper.at}, blocks of {size}", "block_bytes": sizes})
        for size, sizes in (("0 B to 4,351 B", [0, 4351]), ("4,352 B and more", [4352, None]))
    ]
    said, by_size = on_wrappers(FarAdvice.model_construct(sites=halves))
    assert "makes 100% of all allocations" in said
    assert "the size is the one that was requested first" in by_size
    named = wrapper.model_copy(update={"at": "sqlite3MemMalloc+0x14 (libsqlite3.so.0.8.6)"})
    deeper = wrapper.model_copy(update={"chain": [*wrapper.chain, "/usr/bin/sqlite3+0x10"]})
    few = wrapper.model_copy(update={"allocations": 10})
    for other in (named, deeper, few):
        assert on_wrappers(FarAdvice.model_construct(sites=[other])) == []


def result(**others: object) -> AdviceResult:
    """A run of which nothing is special, but for the given figures."""
    figures: dict[str, object] = {
        "program": ["goprog"],
        "plan": None,
        "limits": [],
        "warnings": [],
        "fars": [],
        "within": [],
        "sites": [],
        "far": "cxl-asic",
        "near": "dram",
        "near_latency_ns": None,
        "movable_bytes": 58 << 20,
        "fixed_bytes": 15 << 20,
        "near_bytes": 0,
        "unseen_share": 0.0,
        "unknown_share": 0.0,
        "slowdown_all_far": 1.0,
        "slowdown_plan": 1.0,
        "time_near_s": 1.0,
        "time_all_far_s": 1.0,
        "cpu_near_s": 1.0,
        "disturbed": False,
        "run_disturbed": False,
        "provenance": {},
        "intervals": {},
    }
    return AdviceResult.model_construct(**{**figures, **others})  # type: ignore[arg-type]


FIXED = "(15 MiB of other memory is near by assumption)."
MOVABLE = "58 MiB of movable memory"
ANSWERS = [
    (
        {"slowdown_all_far": 1.14, "near_bytes": 26 << 20},
        f"On cxl-asic this program runs 1.14 × slower; keep 26 MiB of its {MOVABLE} near and it "
        f"loses nothing {FIXED}",
    ),
    (
        {"slowdown_all_far": 1.5, "slowdown_plan": 1.2, "near_bytes": 58 << 20},
        f"On cxl-asic this program runs 1.50 × slower; keep all of its {MOVABLE} near and it runs "
        f"1.20 × slower {FIXED}",
    ),
    (
        {},
        f"On cxl-asic this program loses nothing; near memory for its {MOVABLE} gains nothing "
        f"{FIXED}",
    ),
    (
        {
            "slowdown_all_far": 1.11,
            "slowdown_plan": 1.11,
            "near_budget_bytes": 16 << 20,
            "curve": [
                BudgetPoint.model_construct(near_bytes=near << 20, slowdown=loss)
                for near, loss in ((0, 1.11), (20, 1.06), (58, 1.02))
            ],
        },
        f"On cxl-asic this program runs 1.11 × slower; near memory for its {MOVABLE} gains nothing "
        "within the near budget of 16 MiB, which is too small for its sites: with 20 MiB near it "
        f"runs 1.06 × slower {FIXED}",
    ),
    (
        {"slowdown_all_far": 1.3, "slowdown_plan": 1.3, "movable_bytes": 0},
        "On cxl-asic this program runs 1.30 × slower; it has no memory that a plan could place "
        f"{FIXED}",
    ),
    (
        {"slowdown_all_far": 1.3, "slowdown_plan": 1.1},
        f"On cxl-asic this program runs 1.30 × slower; with its {MOVABLE} far it runs 1.10 × "
        f"slower {FIXED}",
    ),
    (
        {"slowdown_all_far": 1.4, "intervals": {"slowdown_all_far": (1.1, 1.7)}},
        f"Uncertain, 1.10–1.70 ×: on cxl-asic this program runs 1.40 × slower; with its {MOVABLE} "
        f"far it loses nothing {FIXED}",
    ),
    (
        {"run_disturbed": True, "slowdown_all_far": 1.4},
        "Uncertain, because other programs ran: on cxl-asic this program runs 1.40 × slower; with "
        f"its {MOVABLE} far it loses nothing {FIXED}",
    ),
    (
        {"disturbed": True, "intervals": {"slowdown_all_far": (0.99, 1.01)}},
        "Uncertain, because other programs ran, 0.99–1.01 ×: on cxl-asic this program loses "
        f"nothing; near memory for its {MOVABLE} gains nothing {FIXED}",
    ),
    (
        {"intervals": {"slowdown_all_far": (1.0, 1.7)}, "unknown_share": 0.99},
        "Uncertain, because the data of 99% of the samples is unknown, 1.00–1.70 ×: on cxl-asic "
        f"this program loses nothing; near memory for its {MOVABLE} gains nothing {FIXED}",
    ),
    (
        {"slowdown_all_far": 0.8, "unseen_share": 0.12},
        "12% of the CPU time was in programs that it started and that cannot be traced; of the "
        f"rest: on cxl-asic this program takes 0.80 × the time; with its {MOVABLE} far it loses "
        f"nothing {FIXED}",
    ),
]


@pytest.mark.parametrize(("figures", "words"), ANSWERS)
def test_the_first_sentence_is_the_answer(figures: dict[str, object], words: str) -> None:
    assert headline(result(**figures)) == words
    assert finding(result(**figures)).startswith(words)


def test_the_command_names_the_tiers_of_sites_on_both_memories() -> None:
    sites = [SiteAdvice.model_construct(near_share=share) for share in (0.375, 0.25, 0.375, None)]
    assert apply_command(result(plan="p.plan", pid=None, perf=None, sites=sites)) == (
        "nearfar run --plan p.plan --tier far=TIER --tier near1far3=numa:NEAR+FAR,weights=1:3 "
        "--tier near3far5=numa:NEAR+FAR,weights=3:5 --check -- goprog"
    )


def test_the_command_names_tiers_of_this_machine() -> None:
    tiers = {"near": "dram,pages=thp", "far": "dram,pages=4k"}
    assert apply_command(result(plan="p.plan", pid=None, perf=None, sites=[], **tiers)) == (
        "nearfar run --plan p.plan --tier near=dram,pages=thp --tier far=dram,pages=4k --check -- "
        "goprog"
    )


def test_a_profile_of_a_user_is_no_tier_of_the_command() -> None:
    """The record has the name in the file, not the file's."""
    tiers = {"far": "cxlbox", "near": "dimm0"}
    assert apply_command(result(plan="p.plan", pid=None, perf=None, sites=[], **tiers)) == (
        "nearfar run --plan p.plan --tier far=TIER --check -- goprog"
    )


def test_an_object_that_all_calls_share_is_named_once() -> None:
    def named(at: str) -> str:
        return site_name(SiteAdvice.model_construct(at=at, functions=[]))

    assert named("a<b>::f+0x1 (l.so)>g+0x2 (l.so)") == "a<b>::f+0x1>g+0x2 (l.so)"
    assert named("f+0x1 (l.so)>g+0x2 (m.so)") == "f+0x1 (l.so)>g+0x2 (m.so)"
    assert named("g.c:6>g.c:9") == "g.c:6>g.c:9"
    part = "os::pd_commit_memory+0x3b (libjvm.so), its first 128 MiB"
    assert named(part) == part


def test_an_exact_figure_has_no_interval() -> None:
    exact = result(near_bytes=58 << 20, intervals={"slowdown_plan": (1.0, 1.0)})
    assert "intervals" not in finding(exact)
    assert figure(exact, "slowdown_plan").startswith("1.00 × ")
    assert "(" not in figure(exact, "slowdown_plan")


def test_the_curve_names_each_choice_once() -> None:
    budgets = [(0, 0, 1.4), (10, 0, 1.4), (20, 15, 1.2), (30, 15, 1.2), (40, 40, 1.0)]
    points = [
        BudgetPoint.model_construct(
            near_budget_bytes=at << 20, near_bytes=used << 20, slowdown=loss
        )
        for at, used, loss in budgets
    ]
    console = Console(width=80, record=True, file=StringIO())
    points[2].interleaved = True
    far = FarAdvice.model_construct(curve=points, knee_bytes=40 << 20, near_bytes=15 << 20)
    console.print(*_curve(far))
    rows = console.export_text().splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["0", "15", "40"]
    assert [row.split()[-1] for row in rows[1:]] == ["interleaved", "knee"]
    assert "plan, interleaved" in rows[1]


def test_the_headline_says_how_long_the_program_is_idle() -> None:
    assert "It is off the CPU for 75% of its wall time" in finding(result(cpu_near_s=0.25))
    assert "off the CPU" not in finding(result())
    busy = finding(result(cpu_near_s=0.25, run_disturbed=True))
    assert "75% of its wall time, in part because other programs ran, which is" in busy


def test_what_a_small_loss_needs_is_said_unless_it_is_the_plan() -> None:
    within = [
        WithinPoint(within_slowdown=limit, near_bytes=size << 20, slowdown=limit)
        for limit, size in ((1.02, 30), (1.05, 20))
    ]
    needs = "It needs 20 MiB near to stay within 5 %."
    assert needs in finding(result(within=within, near_bytes=26 << 20, slowdown_all_far=1.06))
    assert needs not in finding(result(within=within, near_bytes=20 << 20, slowdown_all_far=1.06))
    shown_as_5 = result(within=within, near_bytes=26 << 20, slowdown_all_far=1.053)
    assert needs not in finding(shown_as_5)


def test_what_the_answer_stands_on_is_said_with_its_origin() -> None:
    assert basis(result()) == []
    stood_on = result(
        near_latency_ns=155.0,
        near_bandwidth_bytes_per_s=35e9,
        near_page_bytes=4096,
        last_cache_bytes=12 << 20,
        host_epochs=4,
        provisional=True,
        fars=[
            FarAdvice.model_construct(
                far="cxl-asic",
                far_latency_ns=250.0,
                intervals={},
                provenance={"far_latency_ns": claimed("a paper")},
            )
        ],
        intervals={"near_latency_ns": (150.0, 160.0), "last_cache_bytes": (8 << 20, 16 << 20)},
        provenance={"last_cache_bytes": claimed("given: --llc")},
    )
    assert basis(stood_on) == [
        "method: traced under an emulator",
        "near dram: 155 ns (150–160 ns), 35 GB/s, 4 KiB pages",
        "far cxl-asic: 250 ns (claimed)",
        "last cache: 12 MiB (8–16 MiB, given)",
        "this machine: measured in 4 epochs; provisional, `nearfar study` completes it",
    ]


def test_near_memory_that_the_program_did_not_run_on_is_said() -> None:
    rate = "near_bandwidth_bytes_per_s"
    capped = claimed(f"{CAPPED}; a paper")
    converted = result(
        near="laptop",
        near_latency_ns=108.0,
        near_bandwidth_bytes_per_s=35e9,
        near_page_bytes=4096,
        near_page_walk_ns=94.0,
        observed_on="dram",
        observed_latency_ns=157.0,
        provenance={rate: capped},
    )
    lines = basis(converted)
    assert lines[1] == "observed on dram of this machine: 157 ns; stalls are converted to laptop"
    assert lines[2] == f"near laptop: 108 ns, 35 GB/s ({CAPPED}), 4 KiB pages"
    assert lines[3] == (
        "page walk: 94 ns more, if the TLB has no entry, on 4 KiB pages and with as much memory as "
        "the program has (longer with more memory); the latency above is without it, as on huge "
        "pages"
    )


def test_a_figure_that_was_measured_next_to_other_programs_says_so() -> None:
    rate = "near_bandwidth_bytes_per_s"
    measured = Provenance(
        origin=Origin.MEASURED, statistic="fit", samples=0, note=f"nearfar; {DISTURBED}"
    )
    line = basis(
        result(
            near_latency_ns=157.0,
            near_bandwidth_bytes_per_s=40e9,
            intervals={rate: (4.35e9, 40e9)},
            provenance={rate: measured},
        )
    )[1]
    assert line == ("near dram: 157 ns, 40 GB/s (4.35–40 GB/s, measured while other programs ran)")


def cost(number: int, far_time_s: float, **others: object) -> SiteAdvice:
    figures: dict[str, object] = {"site": number, "first_touch_s": 0.0, "far_time_s": far_time_s}
    return SiteAdvice.model_construct(**{**figures, **others})  # type: ignore[arg-type]


def test_a_sampled_answer_reports_its_samples() -> None:
    sampled = result(near_latency_ns=155.0, samples=4000, sampling_period_s=5e-4, method="sampled")
    plain = "method: 4000 samples of a native run, one per 500 µs of CPU time"
    assert basis(sampled)[0] == plain
    assert basis(sampled.model_copy(update={"sampling_share": 1.0}))[0] == plain
    in_bursts = basis(sampled.model_copy(update={"sampling_share": 0.34}))[0]
    assert in_bursts == f"{plain}, in bursts, 34% of the time"


def test_without_movable_memory_one_placement_is_shown() -> None:
    assert list(whole_placements(result(movable_bytes=0))) == ["all_far"]
    assert list(whole_placements(result(pid=7))) == ["all_far", "movable_far", "plan"]


def test_sites_that_make_nearly_all_of_the_loss_are_shown() -> None:
    few = mattering(result(sites=[cost(0, 0.003), cost(1, 0.1), cost(2, 0.9, first_touch_s=-0.1)]))
    assert [site.site for site, _ in few.shown] == [2, 1]
    assert (few.others, few.rest) == (1, "and 1 other site, 0.3% of the loss")
    many = mattering(result(sites=[cost(n, 1.0) for n in range(40)]))
    assert (len(many.shown), many.rest) == (10, "and 30 other sites, 75.0% of the loss")
    none = mattering(result(sites=[cost(0, 0.0)]))
    assert (none.shown, none.rest) == ([], "")


def test_a_site_is_named_by_its_functions_and_lines() -> None:
    calls = ["make_node g.c:6", "build g.c:20", "main g.c:30"]
    assert site_name(cost(0, 1.0, at="g.c:6", functions=calls)) == "make_node  g.c:6"
    assert site_name(cost(0, 1.0, at="g.c:20>6", functions=calls)) == "build>make_node  g.c:20>6"
    assert site_name(cost(0, 1.0, at="libx.so+0x10", functions=[])) == "libx.so+0x10"


def test_the_name_of_a_program_is_written_as_it_is() -> None:
    found = warnings(result(warnings=["goprog ended with 1", "the trace was stopped"]))
    assert found == ["goprog ended with 1.", "The trace was stopped."]
