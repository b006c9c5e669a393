from __future__ import annotations

import csv
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buffered_memory import KIB, MIB, Curve, draw_curve
from nearfar.measure import knees, latency
from nearfar.measure.access_unit import BlockCost, access_unit
from nearfar.measure.curve_file import examine
from nearfar.measure.knees import FoundKnee
from nearfar.measure.session import Effort
from nearfar.records.figures import Origin
from nearfar.records.results import LatencyCurve, LatencyPoint

DATA = Path(__file__).parent / "data"
LENS = DATA / "lens_optane100_one_dimm.csv"


# ---- Published data ------------------------------------------------------------------------------


def test_the_published_curve_has_the_buffers_and_the_unit_that_its_authors_found() -> None:
    found = examine(LENS)
    assert [
        knee.region_bytes / true
        for knee, true in zip(found.knees, [16 * KIB, 16 * MIB], strict=True)
    ] == [pytest.approx(1, abs=0.1), pytest.approx(1, abs=0.1)]
    first, second = found.knees
    assert first.low <= 16 * KIB <= first.high
    assert second.low <= 16 * MIB <= second.high
    assert second.high / second.low < 2
    assert found.access_unit_bytes == 256
    assert found.provenance["access_unit_bytes"].origin is Origin.MODELLED


def test_blocks_beyond_the_first_buffers_lines_still_show_the_second_buffer() -> None:
    with LENS.open() as file:
        rows = [row for row in csv.DictReader(file) if row["block_bytes"] == "256"]
    found = knees.find(
        [int(row["region_bytes"]) for row in rows], [float(row["latency_ns"]) for row in rows]
    )
    # LENS: the 16 KiB buffer holds lines of 256 B, so blocks of 256 B never hit in it.
    assert [knee.low <= 16 * MIB <= knee.high for knee in found] == [True]


# ---- Blind: memories with known buffers ----------------------------------------------------------


def _is_right(true: int, found: FoundKnee) -> bool:
    ratio = found.region_bytes / true
    return found.low <= true <= found.high or 1 / 1.5 <= ratio <= 1.5


def _all_found(curve: Curve, found: list[FoundKnee]) -> bool:
    true = curve.memory.buffers
    return len(true) == len(found) and all(map(_is_right, true, found))


def _judge(seeds: range) -> tuple[int, float, float]:
    """Curves with all knees and no other; share of intervals that hold; median high over low."""
    right, held, widths = 0, [], []
    for curve in map(draw_curve, seeds):
        found = knees.find(curve.regions, curve.latencies_ns)
        if _all_found(curve, found):
            right += 1
            pairs = list(zip(curve.memory.buffers, found, strict=True))
            held += [knee.low <= true <= knee.high for true, knee in pairs]
            widths += [knee.high / knee.low for _, knee in pairs]
    print(f"{right} of {len(seeds)} right, {np.mean(held):.3f} of the intervals hold")
    return right, float(np.mean(held)), float(np.median(widths))


def test_known_buffers_are_found_in_a_few_curves() -> None:
    right, _, _ = _judge(range(50_000, 50_030))
    assert right >= 28


@pytest.mark.long
@pytest.mark.parametrize("first", [30_000, 70_000])
def test_known_buffers_are_found_in_95_of_100_curves(first: int) -> None:
    right, held, width = _judge(range(first, first + 100))
    assert right >= 95
    assert held >= 0.9
    assert width <= 2


def test_the_judge_refuses_a_false_knee_and_a_missed_one() -> None:
    curve = draw_curve(50_000)
    found = knees.find(curve.regions, curve.latencies_ns)
    assert _all_found(curve, found)
    assert not _all_found(curve, found[1:])
    assert not _all_found(curve, [*found, found[-1]])


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.05])
def test_noise_alone_has_no_knee(noise: float) -> None:
    rng = random.Random(3)
    regions = [4 * KIB * 2**k for k in range(17)]
    for _ in range(30):
        assert knees.find(regions, [90 * rng.lognormvariate(0, noise) for _ in regions]) == []


# ---- Properties ----------------------------------------------------------------------------------

_FEW = settings(max_examples=10, deadline=None, derandomize=True)


@_FEW
@given(st.integers(60_000, 60_200), st.floats(0.01, 100))
def test_the_unit_of_time_does_not_matter(seed: int, factor: float) -> None:
    curve = draw_curve(seed)
    plain = knees.find(curve.regions, curve.latencies_ns)
    scaled = knees.find(curve.regions, [factor * ns for ns in curve.latencies_ns])
    assert [(k.region_bytes, k.low, k.high) for k in plain] == [
        (k.region_bytes, k.low, k.high) for k in scaled
    ]


@_FEW
@given(st.lists(st.floats(0.5, 500), min_size=knees.MIN_REGIONS, max_size=40))
def test_any_curve_has_ascending_knees_inside_their_intervals(latencies: list[float]) -> None:
    regions = [64 * 3**k // 2**k for k in range(1, len(latencies) + 1)]
    found = knees.find(regions, latencies)
    assert found == knees.find(regions, latencies)
    for knee in found:
        assert regions[0] <= knee.low <= knee.region_bytes <= knee.high <= regions[-1]
        assert knee.ratio > 1
    assert [k.region_bytes for k in found] == sorted(k.region_bytes for k in found)


@pytest.mark.parametrize(
    ("regions", "latencies"),
    [
        ([64, 128, 256, 512, 1024], [1.0] * 5),
        ([64, 128, 256, 512, 1024, 1024], [1.0] * 6),
        ([64, 128, 256, 512, 1024, 2048], [1.0] * 5 + [float("nan")]),
        ([64, 128, 256, 512, 1024, 2048], [1.0] * 5 + [0.0]),
    ],
)
def test_an_invalid_curve_is_refused(regions: list[float], latencies: list[float]) -> None:
    with pytest.raises(ValueError, match="knees need"):
        knees.find(regions, latencies)


# ---- Measured curves and the last cache ----------------------------------------------------------


def _measured(file: str) -> LatencyCurve:
    with (DATA / file).open() as lines:
        points = [
            LatencyPoint(region_bytes=int(r["region_bytes"]), latency_ns=float(r["latency_ns"]))
            for r in csv.DictReader(lines)
        ]
    return LatencyCurve(tier="dram", pages="thp", block_bytes=64, cpu=0, points=points)


def test_the_last_cache_of_a_virtual_machine_is_its_usable_part() -> None:
    found = latency.knees_of(_measured("virtual_machine_huge_pages.csv"))
    assert 24 * KIB <= found[0].region_bytes <= 48 * KIB
    last = latency.effective_last_cache(found)
    assert last is not None
    assert MIB / 2 <= last <= 3 * MIB


def test_page_walks_bend_the_curve_but_are_no_cache() -> None:
    found = latency.knees_of(_measured("virtual_machine_small_pages.csv"))
    assert found[-1].region_bytes > 8 * MIB
    last = latency.effective_last_cache(found)
    assert last is not None
    assert MIB / 4 <= last <= 3 * MIB


def test_too_few_regions_have_no_knees_and_no_last_cache() -> None:
    curve = _measured("virtual_machine_huge_pages.csv")
    curve.points = curve.points[: knees.MIN_REGIONS - 1]
    assert latency.knees_of(curve) == []
    assert latency.effective_last_cache([]) is None


class _Session:
    seed = 5
    machine_id = "m"


@pytest.mark.parametrize(("reported", "kept"), [(32 * MIB, 33), (None, 33), (32 * MIB, 4)])
def test_measured_curves_come_with_their_knees(
    reported: int | None, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    curve = _measured("virtual_machine_huge_pages.csv")
    curve.points = curve.points[:kept]
    monkeypatch.setattr(latency, "measure", lambda *_: (curve, []))
    result, _ = latency.measure_tiers(
        _Session(),  # type: ignore[arg-type]
        ["shm:"],
        0,
        256 * MIB,
        reported,
        Effort(1.0),
    )
    if kept < knees.MIN_REGIONS:
        assert (result.knees, result.effective_last_cache_source) == ([], "reported")
        assert result.effective_last_cache_bytes == reported
        return
    assert result.effective_last_cache_source == "knee"
    assert result.effective_last_cache_bytes in [knee.region_bytes for knee in result.knees]
    about = result.knees[0].provenance["region_bytes"]
    assert (about.origin, about.statistic, about.samples, about.machine) == (
        Origin.MEASURED,
        "fit",
        33,
        "m",
    )


# ---- Access unit ---------------------------------------------------------------------------------


def _costs(levels: dict[int, float]) -> list[BlockCost]:
    """Small regions stay in a buffer that hides the unit."""
    return [
        BlockCost(block, region, 20.0 if region < 64 * KIB else ns)
        for block, ns in levels.items()
        for region in (4 * KIB, 16 * KIB, 4 * MIB, 64 * MIB)
    ]


@pytest.mark.parametrize("unit", [128, 256, 512, 1024])
def test_the_unit_is_where_stores_stop_getting_cheaper(unit: int) -> None:
    costs = _costs(
        {block: 20.0 * max(1, unit / block) for block in (64, 128, 256, 512, 1024, 2048)}
    )
    found = access_unit(costs)
    assert found is not None
    assert (found.unit_bytes, found.low, found.high, found.blocks) == (unit, unit // 2, unit, 6)


@pytest.mark.parametrize(
    "levels",
    [
        {64: 80.0, 128: 40.0},  # too few blocks
        {64: 20.0, 128: 20.0, 256: 20.0},  # the unit may be smaller
        {64: 80.0, 128: 40.0, 256: 20.0},  # the unit may be larger
    ],
)
def test_a_unit_outside_the_blocks_is_not_guessed(levels: dict[int, float]) -> None:
    assert access_unit(_costs(levels)) is None


@pytest.mark.parametrize(
    ("reported", "quick", "whole"), [(32, 64, 256), (2, 32, 16), (260, 256, 256), (None, 32, 128)]
)
def test_regions_exceed_the_last_cache_up_to_a_limit(
    reported: int | None, quick: int, whole: int
) -> None:
    last = reported * MIB if reported else None
    assert latency.quick_region(last) == quick * MIB
    assert latency.default_region(last) == whole * MIB
