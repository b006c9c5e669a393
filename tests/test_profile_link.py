"""``nearfar profile link``: a link with the latency that was measured at each load."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import RunNearfar
from nearfar import fit_link
from nearfar.errors import BadInputError
from nearfar.profiles import load_profile
from nearfar.profiles.sheets import write_profile
from nearfar.records.profile import Figure, Profile

GB = 1e9
#: GB/s, and ns of an expander as a processor sees them.
LOADED = ((0.1, 250), (5, 255), (10, 270), (15, 330), (18, 520), (60, 900))


def expander(points: tuple[tuple[float, float], ...] = LOADED) -> Profile:
    measured = load_profile("ddr5")
    curve = Figure(
        unit="ns",
        x=["read_share", "bandwidth_bytes_per_s"],
        points=[[1.0, load * GB, latency] for load, latency in points],
        source=next(iter(measured.sources)),
        confidence="C",
    )
    figures = {"read_latency_by_load_ns": curve}
    return measured.model_copy(update={"name": "expander", "figures": figures})


def test_the_simulated_device_has_the_measured_latency_at_each_load() -> None:
    fitted = fit_link(load_profile("cxl-ddr5"), expander(), "mine")
    assert [load / GB for load in fitted.left_out] == [60]  # more than the link's 31.5 GB/s
    assert len(fitted.errors) == len(LOADED) - 1
    assert max(map(abs, fitted.errors.values())) < 0.05
    points = fitted.profile.curve("link_latency_by_load_ns")
    assert [load / GB for load, _ in points] == [0.1, 5, 10, 15, 18]
    assert all(0 < latency < 125 + (load > 10 * GB) * 135 for load, latency in points)
    assert "link_latency_ns" not in fitted.profile.figures


def test_a_device_that_is_slower_than_the_measured_memory_is_refused() -> None:
    with pytest.raises(BadInputError, match="without its link"):
        fit_link(load_profile("cxl-ddr5"), expander(((1, 30), (2, 31))), "mine")
    with pytest.raises(BadInputError, match="reaches none of the measured loads"):
        fit_link(load_profile("cxl-ddr5"), expander(((100, 300), (200, 300))), "mine")
    with pytest.raises(BadInputError, match="link_bandwidth_bytes_per_s"):
        fit_link(load_profile("ddr4-3200"), expander(), "mine")


def test_the_new_profile_is_simulated(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    write_profile(expander(), tmp_path / "expander.toml")
    new = tmp_path / "mine.toml"
    arguments = ("profile", "link", "cxl-ddr5", str(tmp_path / "expander.toml"))
    done = run_nearfar(*arguments, "--name", "mine", "--out", str(new))
    assert done.code == 0, done
    assert "within" in done.stderr
    assert "does not reach 1 measured loads" in done.stderr
    stream = ("sim", "--pattern", "chase", "--requests", "2000", "--far", str(new), "--json", "-")
    found = json.loads(run_nearfar(*stream).stdout)
    assert 240 < found["tiers"]["far"]["read_latency_ns"] < 260
    run_nearfar(*arguments, "--out", str(new)).assert_refused(2, "exists")
