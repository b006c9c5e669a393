"""Which sites stay near: the knapsack against exhaustive search, and the rules of a plan."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearfar.place.fractions import NearParts
from nearfar.place.knapsack import by_density, exactly, fits, gain_of, knee, max_bytes
from nearfar.place.plan_writer import plan_text
from nearfar.place.promise import PlanPromise
from nearfar.place.rules import MAX_RULES, rules_for
from nearfar.place.sampled_sizes import with_life
from nearfar.place.sites import Frame, Site
from nearfar.plan_files.reader import read_plan


def best_of_all(benefit: list[float], sizes: np.ndarray, budget: float) -> float:
    """By looking at every set."""
    everything = range(len(benefit))
    sets = (frozenset(s) for n in range(len(benefit) + 1) for s in combinations(everything, n))
    return max(gain_of(s, benefit) for s in sets if fits(s, sizes, budget))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.floats(0, 1))
def test_the_exact_choice_is_the_best(seed: int, count: int, share: float) -> None:
    random = np.random.default_rng(seed)
    sizes = random.integers(0, 1000, (count, 6)).astype(float)
    benefit = random.integers(-20, 100, count).astype(float).tolist()
    budget = share * max_bytes(frozenset(range(count)), sizes)
    found = exactly(benefit, sizes, budget)
    assert fits(found.near, sizes, budget)
    best = best_of_all(benefit, sizes, budget)
    assert gain_of(found.near, benefit) >= best * 0.998 - 1e-9
    dense = by_density(benefit, sizes, budget)
    assert fits(dense, sizes, budget)
    assert gain_of(dense, benefit) <= best + 1e-9


def test_sites_that_live_one_after_the_other_share_near_memory() -> None:
    sizes = np.array([[100.0, 0.0], [0.0, 100.0], [100.0, 100.0]])
    assert exactly([5.0, 5.0, 9.0], sizes, 100.0).near == {0, 1}


def test_the_knee_is_where_the_curve_bends() -> None:
    assert knee([0, 10, 20, 100], [2.0, 1.2, 1.15, 1.0]) == 1
    assert knee([0, 100], [1.0, 1.0]) == 0


def site(number: int, *offsets: int, size: int = 100, kind: str = "heap", name: str = "") -> Site:
    frames = tuple(Frame("/bin/prog", name or "ab" * 20, offset) for offset in offsets)
    return Site(number, kind, frames, 1, size, size, 10, 5, 1.0)  # type: ignore[arg-type]


def test_rules_name_the_fewest_addresses_that_separate_verdicts() -> None:
    sites = [
        site(1, 0x10, 0x100),
        site(2, 0x10, 0x200),
        site(3, 0x20, 0x300),
        site(4, 0x20, 0x400),
        site(5, 0x10),
    ]
    rules = rules_for(sites, NearParts.whole({1, 5}), {1: 5.0})
    reported = {tuple(f.offset for f in rule.name.chain): rule.tier for rule in rules}
    assert reported == {
        (0x10, 0x100): "near",
        (0x10, 0x200): "far",
        (0x20,): "far",
        (0x10,): "near",
    }
    assert [len(rule.name.chain) for rule in rules] == [2, 2, 1, 1]  # the first that holds decides


def test_memory_without_a_call_chain_has_its_selector_and_parts_have_ranges() -> None:
    large = 8 << 20
    mapped = site(1, 0x10, 0x100, kind="mapping", size=large)
    sites = [
        site(0, 0x10, 0x100),
        replace(mapped, part=(0, 1 << 20)),
        replace(mapped, number=2, part=(1 << 20, None)),
        replace(site(3, kind="mapping", size=large), selector="map=heap"),
        replace(site(4, 0, kind="statics", size=large), selector="globals=abab"),
        site(5, 0x30, kind="mapping", size=large),
        site(6, 0x40, kind="mapping", size=4096),  # too little to be placed
    ]
    rules = rules_for(sites, NearParts.whole({1, 5}), {1: 5.0})
    said = {rule.name.condition(): rule.tier for rule in rules}
    frame = "ab" * 20
    assert said == {
        f"site={frame}+0x10": "far",
        f"map={frame}+0x10<{frame}+0x100 range=0..1048576": "near",
        f"map={frame}+0x10<{frame}+0x100 range=1048576..": "far",
        "map=heap": "far",
        "globals=abab": "far",
        f"map={frame}+0x30": "near",
    }


def test_regions_of_every_size_are_of_a_class() -> None:
    """A region that grows beyond the sizes of the observed run has the rules of the largest."""
    large, table = "map=anonymous size=67108864..268435455", "map=anonymous size=4194304..16777215"
    regions = [replace(site(n, kind="mapping", size=8 << 20), selector=large) for n in (1, 2)]
    sites = [
        replace(regions[0], part=(0, 1 << 20)),
        replace(regions[1], part=(1 << 20, None)),
        replace(site(3, kind="mapping", size=8 << 20), selector=table),
    ]
    rules = rules_for(sites, NearParts.whole({1}), {1: 5.0})
    assert [(rule.name.condition(), rule.tier) for rule in rules] == [
        ("map=anonymous size=16777216.. range=0..1048576", "near"),
        ("map=anonymous size=16777216.. range=1048576..", "far"),
        ("map=anonymous size=1048576..16777215", "far"),
    ]


def test_small_regions_that_are_movable_together_have_a_size_of_their_own() -> None:
    """As the JVM's: none has 1 MiB, all together have more."""
    small, large = "map=anonymous size=262144..1048575", "map=anonymous size=4194304..16777215"
    sites = [
        replace(site(n, kind="mapping", size=8 << 20), selector=selector)
        for n, selector in ((1, large), (2, small))
    ]
    assert [rule.name.condition() for rule in rules_for(sites, NearParts(), {})] == [
        "map=anonymous size=1048576..",
        "map=anonymous size=262144..1048575",
    ]


def test_rules_of_many_sites_take_time_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that compile themselves have thousands of sites (node: 3,276)."""
    compared = 0

    def equals(one: Frame, other: object) -> bool:
        nonlocal compared
        compared += 1
        return isinstance(other, Frame) and one.offset == other.offset

    monkeypatch.setattr(Frame, "__eq__", equals)
    sites = [site(n, n % 50 + 1, 1000 + n) for n in range(1, 1001)]
    rules_for(sites, NearParts.whole(range(1, 1001, 2)), {})
    assert compared < 40 * len(sites)


def test_blocks_divided_by_size_have_rules_with_sizes() -> None:
    """A deeper site of the same call keeps its whole chain, although all tiers are the same."""
    small, large = (
        replace(site(n, 0x10), block_sizes=sizes)
        for n, sizes in ((1, (0, 4351)), (2, (4352, None)))
    )
    deeper = site(3, 0x10, 0x50)
    rules = rules_for([small, large, deeper], NearParts.whole({1, 2, 3}), {})
    called = "site=" + "ab" * 20
    assert [(rule.tier, rule.name.condition()) for rule in rules] == [
        ("near", f"{called}+0x10<{'ab' * 20}+0x50"),
        ("near", f"{called}+0x10 size=0..4351"),
        ("near", f"{called}+0x10 size=4352.."),
    ]


def test_of_many_rules_those_of_weight_are_kept() -> None:
    sites = [site(n, n, size=n) for n in range(1, 301)]
    rules = rules_for(sites, NearParts(), {})
    assert len(rules) == MAX_RULES
    assert {300, 299} <= {rule.sites[0].number for rule in rules}


def test_a_site_that_no_plan_can_name_gets_no_rule() -> None:
    sites = [site(1, 0x10, kind="stack"), site(2), site(3, 0x30, name="name:a b"), site(4, 0x40)]
    assert [rule.sites[0].number for rule in rules_for(sites, NearParts(), {})] == [4]


@pytest.mark.parametrize("budget", [None, 500])
def test_a_plan_is_text_that_the_library_reads(budget: int | None) -> None:
    whole = PlanPromise(
        allocated_bytes=400,
        peak_bytes=400,
        near_bytes=200,
        near_budget_bytes=budget,
        slowdown=1.1,
        slowdown_all_far=2.0,
    )
    sites = [site(1, 0x10), site(2, 0x20)]
    text = plan_text(
        sites, NearParts.whole({1}), {1: 1.0}, whole, {1: "a.c:1", 2: "b.c:2"}, ["p", "q"]
    )
    lines = text.splitlines()
    assert lines[0] == "hmalloc-plan 1"
    rules = [line for line in lines if line.startswith("rule")]
    chain = "site=" + "ab" * 20
    assert rules == [
        f"rule near {chain}+0x10" + (" budget=400" if budget else ""),
        f"rule far {chain}+0x20",
        "rule far" if budget else "rule near",
    ]


def test_a_plan_of_samples_promises_no_traffic_and_names_the_sizes_of_its_rules() -> None:
    whole = PlanPromise(
        allocated_bytes=400, peak_bytes=400, near_bytes=0, slowdown=1.1, slowdown_all_far=1.1
    )
    region = replace(
        site(1, kind="mapping", size=8 << 20), selector="map=anonymous size=16777216..67108863"
    )
    labels = {1: "anonymous memory of 16 MiB to 64 MiB"}
    text = plan_text([region], NearParts(), {}, whole, labels, ["process 7"], attached=True)
    # as the table has it, and as the rule has it: no larger one is excluded
    assert "at=anonymous_memory_of_16_MiB_to_64_MiB_(rule:_1_MiB_and_more)" in text
    assert "rule far map=anonymous size=1048576..\n" in text
    assert "reads=" not in text
    assert "writes=" not in text
    assert "nearfar run --check" not in text
    assert "`nearfar place --pid` moves" in text
    counted = whole.model_copy(update={"caches": "l1=1"})
    text = plan_text([region], NearParts(), {}, counted, labels, ["p"])
    assert re.search(r" reads=\d+ writes=\d+ ", text)
    assert "nearfar run --check" in text


def test_the_name_of_a_file_cannot_add_a_line_to_a_plan(tmp_path: Path) -> None:
    whole = PlanPromise(
        allocated_bytes=400, peak_bytes=400, near_bytes=0, slowdown=1.1, slowdown_all_far=1.1
    )
    text = plan_text([site(1, 0x10)], NearParts(), {}, whole, {1: "a\nb\x1b+0x10"}, ["p"])
    (tmp_path / "p.plan").write_text(text)
    assert len(read_plan(tmp_path / "p.plan", ["far"]).rules) == 2
    assert "at=a?b?+0x10" in text


def test_a_part_of_a_mapping_promises_the_bytes_that_are_mapped() -> None:
    """Touched or not: a run counts what its calls map."""
    whole = replace(site(1, 0x10, kind="mapping"), allocated_bytes=180 << 20)
    mapped = {
        part: with_life(
            replace(whole, part=part), np.full(4, float(1 << 20)), np.full(2, 256.0)
        ).allocated_bytes
        >> 20
        for part in (None, (0, 44 << 20), (44 << 20, 100 << 20), (100 << 20, None))
    }
    assert list(mapped.values()) == [180, 44, 56, 80]
    unseen = replace(whole, allocated_bytes=0, part=(0, 44 << 20))
    assert with_life(unseen, np.full(4, 0.0), np.full(2, 256.0)).allocated_bytes == 1 << 20


def test_sites_on_both_memories_have_tiers_with_weights(tmp_path: Path) -> None:
    whole = PlanPromise(
        allocated_bytes=400, peak_bytes=400, near_bytes=200, slowdown=1.1, slowdown_all_far=2.0
    )
    sites = [site(1, 0x10), site(2, 0x20), site(3, 0x30), site(4, 0x40, 0x50), site(5, 0x40)]
    placing = NearParts({1: 8, 2: 5, 4: 4, 5: 5}, (0, 2))
    text = plan_text(sites, placing, {}, whole, {}, ["p"])
    chain = "site=" + "ab" * 20
    assert [line for line in text.splitlines() if line.startswith(("tier", "rule"))] == [
        "tier near1far1 numa:0+2,weights=1:1",
        "tier near5far3 numa:0+2,weights=5:3",
        f"rule near1far1 {chain}+0x40<{chain.removeprefix('site=')}+0x50",
        f"rule near {chain}+0x10",
        f"rule near5far3 {chain}+0x20",
        f"rule far {chain}+0x30",
        f"rule near5far3 {chain}+0x40",
        "rule near",
    ]
    (tmp_path / "mixed.plan").write_text(text)
    assert len(read_plan(tmp_path / "mixed.plan", ["far"]).rules) == 6


def test_the_search_writes_nothing_where_a_document_may_be(
    capfd: pytest.CaptureFixture[str],
) -> None:
    draw = np.random.default_rng(5)
    benefit = [float(b) for b in draw.random(120)]
    sizes = draw.integers(1, 1000, (120, 64)).astype(float)
    exactly(benefit, sizes, float(sizes.sum(axis=0).max() / 3))
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("slowdowns", "best"),
    [
        ([1.38, 1.38, 1.38, 1.0], 3),  # all or nothing
        ([1.38, 1.36, 1.36, 1.0], 3),  # a little with little memory, and the rest with all
        ([1.38, 1.05, 1.04, 1.0], 1),
    ],
)
def test_the_knee_saves_most_of_what_near_memory_can_save(
    slowdowns: list[float], best: int
) -> None:
    assert knee([0, 10, 50, 100], slowdowns) == best
