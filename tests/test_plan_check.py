"""``nearfar run --check``: a run held against the promise of its plan."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from conftest import RunNearfar
from hmalloc_build import compile_c
from nearfar.errors import BadInputError
from nearfar.place.attached.checking import check_placement
from nearfar.place.checking import check_run
from nearfar.place.promise import PlanPromise, Promise, RulePromise, read_promise
from nearfar.place.sites import Frame, Site
from nearfar.place.statistics_files import parse_statistics
from nearfar.place.traffic import Traffic, count, rules_by_site
from nearfar.records.choices import RuleMemory, SiteKind
from nearfar.records.placement import PlacementResult, RulePlacement, UnappliedRule
from nearfar.records.plan_check import Check
from nearfar.records.run_statistics import ProcessStatistics, RuleStatistics
from nearfar.report.terminal.run_statistics import plan_check
from nearfar.tracing.caches import Caches, Level, parse_caches

KIB = 1024


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("check"), "three_sites")


def promised(rule: int, tier: str, size: int, **more: object) -> RulePromise:
    reported: dict[str, object] = {
        "rule": rule,
        "tier": tier,
        "allocations": 1,
        "allocated_bytes": size,
        "peak_bytes": size,
        "reads": 10,
        "writes": 5,
        "stall_share": 0.25,
        "at": f"three_sites.c:{rule}",
    }
    return RulePromise.model_validate({**reported, **more})


def promise(*rules: RulePromise) -> Promise:
    total = sum(rule.allocated_bytes for rule in rules)
    whole = PlanPromise(
        allocated_bytes=total,
        peak_bytes=total,
        near_bytes=total // 2,
        slowdown=1.1,
        slowdown_all_far=2.5,
    )
    return Promise(whole=whole, rules=list(rules))


def plan(folder: Path, reported: Promise, *rules: str) -> Path:
    file = folder / "p.plan"
    file.write_text("\n".join(["hmalloc-plan 1", *reported.lines(), *rules]) + "\n")
    return file


def counted(*, nodes: int = 0, **rules: dict[str, int]) -> ProcessStatistics:
    return ProcessStatistics(
        process=1,
        tiers={"near": {"nodes": 0}, "far": {"nodes": nodes}},
        rules={
            int(name[1:]): RuleStatistics(tier="far", counts=counts)
            for name, counts in rules.items()
        },
    )


def test_a_promise_survives_its_file(tmp_path: Path) -> None:
    reported = promise(promised(1, "near", 100), promised(2, "far", 300, at="a file.c:7"))
    found = read_promise(plan(tmp_path, reported, "rule near"))
    assert found.whole == reported.whole
    assert [rule.at for rule in found.rules] == ["three_sites.c:1", "a_file.c:7"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "promises nothing"),
        ("# promise 1 heap peak_bytes=much", "no promise"),
        ("# promise 1 ", "no promise"),
    ],
)
def test_plans_without_a_promise_are_refused(tmp_path: Path, line: str, words: str) -> None:
    file = tmp_path / "p.plan"
    file.write_text(f"hmalloc-plan 1\n{line}\nrule near\n")
    with pytest.raises(BadInputError, match=words):
        read_promise(file)


def test_kept_and_broken_promises() -> None:
    reported = promise(promised(1, "far", 600), promised(2, "far", 400))
    good = {"allocations": 1, "allocated_bytes": 600, "node1": 90, "absent": 10, "pages": 100}
    other = {**good, "allocated_bytes": 400}
    assert check_run(reported, [counted(nodes=2, r1=good, r2=other)]).kept
    spilled = {**good, "allocated_bytes": 500, "elsewhere_bytes": 100}
    assert (
        "did not go to far" in check_run(reported, [counted(r1=spilled, r2=other)]).rules[0].broken
    )
    moved = {**good, "node1": 80, "node0": 10}
    assert (
        "not on far's node"
        in check_run(reported, [counted(nodes=2, r1=moved, r2=other)]).rules[0].broken
    )
    less = {**good, "allocated_bytes": 10}
    assert "instead of 60.0%" in check_run(reported, [counted(r1=less, r2=other)]).rules[0].broken
    unknown = {"allocations": 1, "allocated_bytes": 200}
    found = check_run(reported, [counted(r1=good, r2=other, r3=unknown)])
    assert not found.kept
    assert "sites that the plan does not know" in found.broken[0]


def test_a_rule_that_was_edited_breaks_the_promise() -> None:
    reported = promise(promised(1, "near", 600), promised(2, "far", 400))
    found = check_run(reported, [counted(r1={"allocated_bytes": 600}, r2={"allocated_bytes": 400})])
    assert not found.kept
    assert [rule.broken for rule in found.rules] == ["the plan's rule places it on far", ""]


def mapped(memory: RuleMemory, **counts: int) -> RuleStatistics:
    return RuleStatistics(tier="far", memory=memory, counts=counts)


def test_mappings_are_compared_with_each_other() -> None:
    reported = promise(promised(1, "far", 600), promised(2, "far", 900), promised(3, "far", 100))
    reported.whole.allocated_bytes = 600

    def held(small: int, unknown: int = 0, **globals_: int) -> Check:
        rules = {
            1: mapped("heap", allocated_bytes=600),
            2: mapped("mapping", allocated_bytes=1800),
            3: mapped("mapping", allocated_bytes=small, node1=99, node0=1),
            4: mapped("mapping", allocated_bytes=unknown),
        }
        if globals_:
            reported.rules.append(promised(5, "far", 64))
            rules[5] = mapped("globals", **globals_)
        ran = ProcessStatistics(process=1, tiers={"far": {"nodes": 2}}, rules=rules)
        return check_run(reported, [ran], Traffic({1: (150, 50)}, unmatched=0))

    kept = held(200, 50)
    assert kept.kept, kept
    assert kept.matched_share == 1
    assert kept.matched_mapping_share == pytest.approx(2000 / 2050)
    assert [rule.memory for rule in kept.rules] == ["heap", "mapping", "mapping"]
    assert "0.6% of the mapped bytes instead of 10.0%" in held(10).rules[2].broken
    unknown = held(200, 1000)
    assert "27.8% of the memory was allocated or mapped at sites" in unknown.broken[0]
    wide = held(200, allocated_bytes=6400, node0=3, node1=97)
    assert "3.0% of its pages are not on far's node" in wide.rules[3].broken
    assert "its object was not loaded" in held(200, allocated_bytes=0).rules[3].broken


def a_virtual_machine(heap_unknown: int, misplaced_kib: int) -> Check:
    """Its mapping of 150 MiB, the rule after 25 small sites of the heap, as in plans of advice."""
    small = [promised(number, "near", 80 * KIB) for number in range(1, 26)]
    reported = promise(*small, promised(26, "far", 150 * KIB * KIB, at="heap of the collector"))
    reported.whole.allocated_bytes = 25 * 80 * KIB
    rules = {
        rule.rule: RuleStatistics(tier="near", counts={"allocated_bytes": 80 * KIB})
        for rule in small
    }
    rules[1].counts["elsewhere_bytes"] = misplaced_kib * KIB
    rules[26] = mapped("mapping", allocated_bytes=150 * KIB * KIB)
    rules[27] = mapped("heap", allocated_bytes=heap_unknown)
    return check_run(reported, [ProcessStatistics(process=1, rules=rules)])


def test_the_verdict_is_on_all_memory_together() -> None:
    found = a_virtual_machine(heap_unknown=300 * KIB, misplaced_kib=8)
    assert found.matched_share == pytest.approx(0.87, abs=0.01)
    assert found.matched_mapping_share == 1
    assert "did not go to near" in found.rules[0].broken
    assert found.kept
    assert found.kept_share == pytest.approx(0.997, abs=0.001)
    assert not a_virtual_machine(heap_unknown=9000 * KIB, misplaced_kib=0).kept


def text_of(check: Check) -> str:
    console = Console(width=200, file=io.StringIO(), highlight=False)
    console.print(plan_check(check))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_the_rules_with_most_memory_come_first() -> None:
    shown = text_of(a_virtual_machine(heap_unknown=0, misplaced_kib=8))
    rows = shown.splitlines()
    assert rows[4].startswith("heap of the collector")
    assert "Traffic" not in shown  # none was counted
    assert "and 6 more rules with 0.3% of the memory, 0 of them broken" in shown
    assert "three_sites.c:1 " in rows[5]
    assert "did not go to near" in rows[5]


def placed_rule(number: int, wanted: int, elsewhere: int = 0) -> RulePlacement:
    return RulePlacement(
        rule=number,
        line=number,
        text="rule far map=anonymous",
        tier="numa:1",
        region_count=1,
        wanted_bytes=wanted * KIB,
        placed_bytes=(wanted - elsewhere) * KIB,
        moved_bytes=0,
    )


def placed_from_outside(*rules: RulePlacement, **more: object) -> PlacementResult:
    fields: dict[str, object] = {
        "pid": 7,
        "program": "/bin/s",
        "ended": "program ended",
        "complete": True,
        "looks": 3,
        "attached_s": 1.0,
        "wanted_bytes": sum(rule.wanted_bytes for rule in rules),
        "placed_bytes": sum(rule.placed_bytes for rule in rules),
        "moved_bytes": 0,
        "rules": list(rules),
    }
    return PlacementResult.model_validate({**fields, **more})


def test_a_program_placed_from_outside_is_checked_by_its_pages() -> None:
    reported = promise(promised(1, "far", 6000 * KIB), promised(2, "far", 60 * KIB))
    kept = check_placement(reported, placed_from_outside(placed_rule(1, 4000), placed_rule(2, 40)))
    assert (kept.kept, kept.kept_share) == (True, 1)
    assert [(rule.pages, rule.misplaced_pages) for rule in kept.rules] == [(1000, 0), (10, 0)]
    assert "Pages were moved from outside" in text_of(kept)
    few = check_placement(
        reported, placed_from_outside(placed_rule(1, 4000), placed_rule(2, 40, 8))
    )
    assert few.kept
    assert "20.0% of its pages are not on far's node" in few.rules[1].broken
    many = placed_from_outside(placed_rule(1, 4000, 400), placed_rule(2, 40))
    assert not check_placement(reported, many).kept
    never = check_placement(reported, placed_from_outside())
    assert not never.kept
    assert "before any of its memory was looked at" in never.broken[0]
    heap = UnappliedRule(rule=1, line=1, text="rule far size=1..", why="places blocks of the heap")
    other = placed_from_outside(placed_rule(2, 40), unapplied=[heap])
    assert (
        "not applied from outside: places blocks"
        in check_placement(reported, other).rules[0].broken
    )
    assert not check_placement(reported, other).kept


def test_a_heap_without_rules_is_not_compared() -> None:
    ran = ProcessStatistics(process=1, rules={1: mapped("mapping", allocated_bytes=100)})
    assert check_run(promise(promised(1, "far", 100)), [ran]).kept
    assert not check_run(promise(promised(1, "far", 100)), [ProcessStatistics(process=1)]).kept


def test_traffic_is_held_against_its_promise() -> None:
    reported = promise(
        promised(1, "near", 600, reads=700, writes=100),
        promised(2, "far", 400, reads=150, writes=50),
    )
    ran = [counted(r1={"allocated_bytes": 600}, r2={"allocated_bytes": 400})]
    ran[0].rules[1].tier = "near"
    kept = check_run(reported, ran, Traffic({1: (7500, 900), 2: (1300, 300)}, unmatched=0))
    assert kept.kept
    assert [rule.reads for rule in kept.rules] == [7500, 1300]
    assert kept.near_traffic_share == pytest.approx(0.84)
    assert kept.promised_near_traffic_share == pytest.approx(0.8)
    shifted = check_run(reported, ran, Traffic({1: (3000, 0), 2: (7000, 0)}, unmatched=0))
    assert not shifted.kept
    assert "30.0% of the heap's traffic instead of 80.0%" in shifted.rules[0].broken
    unknown = check_run(reported, ran, Traffic({1: (800, 0), 2: (100, 0)}, unmatched=100))
    assert not unknown.kept
    assert "10.0% of the heap's traffic goes to sites" in unknown.broken[0]
    assert check_run(reported, ran).matched_traffic_share is None


def test_sites_belong_to_the_first_rule_that_holds(tmp_path: Path) -> None:
    def site(number: int, *frames: int, kind: SiteKind = "heap") -> Site:
        chain = tuple(Frame("/usr/bin/prog", "abcdef12", offset) for offset in frames)
        return Site(number, kind, chain, 1, 64, 64, 10 * number, number, 1.0)

    file = tmp_path / "p.plan"
    file.write_text(
        "hmalloc-plan 1\nrule near site=abcdef12+0x10<abcdef12+0x20 budget=1MiB\n"
        "rule far map=anonymous\nrule far site=name:prog+0x10\nrule far\n"
    )
    rules = rules_by_site(file)
    found = count(
        rules,
        [
            site(1, 0x10, 0x20, 0x30),
            site(2, 0x10, 0x21),
            site(3, 0x11),
            site(4, 0x10, kind="mapping"),
        ],
    )
    assert found == Traffic({1: (10, 1), 3: (20, 2)}, unmatched=33)
    assert found.lines == 66
    file.write_text("hmalloc-plan 1\nrule near size=64KiB..\n")
    with pytest.raises(BadInputError, match="rule 1 goes by size"):
        rules_by_site(file)


def test_caches_survive_a_plan() -> None:
    caches = Caches(Level(32768, 8), Level(262144, 4), None, 2, ((64, 4), (1536, 12)))
    assert parse_caches(caches.line()) == caches
    with_last = Caches(Level(32768, 8), Level(262144, 4), Level(1 << 22, 16), 1)
    assert parse_caches(with_last.line()) == with_last
    with pytest.raises(BadInputError, match="does not specify caches"):
        parse_caches("l1:32768/8")


def test_accounts_of_rules_are_read() -> None:
    text = "hmalloc-stats 1\nprocess 7\nrule.1.tier far\nrule.1.pages 12\nrule.1.node3 4\n"
    text += "rule.2.tier near\nrule.2.memory globals\n"
    process = parse_statistics(text)
    assert process is not None
    assert process.rules[1] == RuleStatistics(tier="far", counts={"pages": 12, "node3": 4})
    assert process.rules[2] == RuleStatistics(tier="near", memory="globals")


def test_a_run_that_keeps_its_promise(
    program: Path, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    table, log, array = 1000 * 64, 4000 * 8, 16000 * 8
    reported = promise(
        promised(1, "near", table), promised(2, "far", log), promised(3, "far", array)
    )
    rules = [
        f"rule near size={table}..{table}",
        f"rule far size={log}..{log}",
        f"rule far size={array}..{array}",
        "rule near",
    ]
    file = plan(tmp_path, reported, *rules)
    run = ["run", "--plan", str(file), "--tier", "far=dram", "--check"]
    done = run_nearfar(*run, "--json", "-", "--", str(program), "1000", "5000")
    assert done.code == 0, done.stderr
    check = json.loads(done.stdout)["check"]
    assert check["kept"]
    assert [rule["allocations"] for rule in check["rules"]] == [1, 1, 1]
    assert check["rules"][1]["pages"] > 0  # the log lives to the end
    assert "promise is kept" in done.stderr
    assert "promises no counts" not in done.stderr  # rules by size are named first
    assert "rule 1 goes by size" in done.stderr
    few = "far=dram,capacity=64KiB,overflow=spill:near"
    done = run_nearfar(
        "run", "--plan", str(file), "--tier", few, "--check", "--", str(program), "1000", "5000"
    )
    assert done.code == 1
    assert "did not go to far" in " ".join(done.stderr.split())
    done = run_nearfar(*run, "--", str(program), "3000", "5000")  # other sizes: other rules
    assert done.code == 1
    assert "does not know" in " ".join(done.stderr.split())
    assert run_nearfar(*run, "--", str(program)).code == 2  # the program's own


def test_check_needs_a_plan_and_a_library(tmp_path: Path, run_nearfar: RunNearfar) -> None:
    done = run_nearfar("run", "--tier", "far=dram", "--check", "--", "true")
    assert done.code == 2
    assert "--plan FILE" in done.stderr
    file = plan(tmp_path, promise(promised(1, "far", 1)), "rule near")
    done = run_nearfar("run", "--plan", str(file), "--check", "--", "sh", "-c", "kill -9 $$")
    assert done.code == 128 + 9


def test_pages_of_a_tier_with_weights_have_their_proportions() -> None:
    text = ["hmalloc-stats 1", "process 1", "tier.far.weight0 5", "tier.far.weight1 3"]
    weighted = parse_statistics("\n".join([*text, "tier.far.nodes 3"]) + "\n")
    assert weighted is not None

    def broken(**pages: int) -> str:
        weighted.rules = {1: RuleStatistics(tier="far", counts={"allocated_bytes": 100, **pages})}
        return check_run(promise(promised(1, "far", 100)), [weighted]).rules[0].broken

    assert broken(node0=620, node1=380) == ""
    assert broken(node0=10, node1=6) == ""
    assert broken(node0=7, node1=9) == ""  # of too few pages
    assert broken(node0=500, node1=500).startswith("50.0% of its pages are on node 0: far has 62.5")
    assert broken() == ""
    broken(node0=1000)
    one = check_run(promise(promised(1, "far", 100)), [weighted], one_node=True)
    assert one.rules[0].broken == ""
