"""Shipped devices as the simulator takes them: their timings, what is refused, the LENS curve."""

from __future__ import annotations

import pytest

from nearfar import _native
from nearfar.errors import BadInputError
from nearfar.profiles import load_profile, profile_names
from nearfar.records.profile import Profile
from nearfar.simulate.devices import Device

Command = tuple[int, str, int, int, int, int]

COMMANDS = ["ddr3-1333", "ddr4-3200", "ddr5-3200", "cxl-ddr5", "dram-snu", "pcm-snu-ns",
            "pcm-snu-cycles", "pcm-lee"]  # fmt: skip


def at(clock: int, act: str, bank: int = 0) -> Command:
    """A command to row 0 of a bank of the first group."""
    return (clock, act, 0, 0, bank, 0)


def specified(t: dict[str, int]) -> dict[str, tuple[list[Command], int, Command]]:
    """Rules of one device: what goes before, the first legal clock, the command that waits."""
    opened, far = at(0, "activate"), 10_000
    read_at, write_end = t["tRAS"], t["tRAS"] + t["CWL"] + t["burst"]
    return {
        "tRCD": ([opened], t["tRCD"], at(0, "read")),
        "tRAS": ([opened], t["tRAS"], at(0, "precharge")),
        "tRTP": ([opened, at(read_at, "read")], read_at + t["tRTP"], at(0, "precharge")),
        "tWR": ([opened, at(read_at, "write")], write_end + t["tWR"], at(0, "precharge")),
        "tRP": (
            [opened, at(read_at, "write"), at(far, "precharge")], far + t["tRP"], at(0, "activate"),
        ),
        "tRRDL": ([opened], t["tRRDL"], at(0, "activate", 1)),
        "tWTRL": (
            [opened, at(t["tRRDL"], "activate", 1), at(far, "write")],
            far + t["CWL"] + t["burst"] + t["tWTRL"], at(0, "read", 1),
        ),
        "tRFC": ([at(0, "refresh")], t["tRFC"], at(0, "activate")),
    }  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_each_timing_is_legal_at_its_clock_and_illegal_one_before(name: str) -> None:
    device = Device.of(load_profile(name)).native
    ps = device.timing_ps()
    clocks = {key: value // ps["clock"] for key, value in ps.items()}
    assert all(value % ps["clock"] == 0 for value in ps.values())
    for rule, (before, legal, last) in specified(clocks).items():
        if clocks[rule] == 0:
            continue
        assert device.check([*before, (legal, *last[1:])]) == [], rule
        found = dict(device.check([*before, (legal - 1, *last[1:])]))
        assert found.get(rule, found.get(rule.removesuffix("L"))) == 1, (rule, found)


@pytest.mark.parametrize(
    ("name", "timings_ns"),
    [
        ("ddr3-1333", {"tRCD": 15, "tRP": 15, "tRAS": 36, "CL": 15, "tRFC": 111, "tREFI": 7800}),
        ("ddr4-3200", {"tRCD": 13.75, "tRP": 13.75, "tRAS": 32.5, "tRFC": 350, "tREFI": 7800}),
        ("ddr5-3200", {"tRCD": 15, "tRP": 15, "tRAS": 32.5, "tRFC": 295, "tREFI": 3900}),
        ("pcm-lee", {"tRCD": 55, "tRP": 150, "tRRDpre": 27.5}),
        ("pcm-snu-ns", {"tRCD": 37.5, "tRP": 100.5}),  # whole clocks of 1.5 ns, upwards
        ("pcm-snu-cycles", {"tRCD": 55.5, "tRP": 150}),
    ],
)
def test_timings_are_those_of_the_specification(name: str, timings_ns: dict[str, float]) -> None:
    timing = Device.of(load_profile(name)).native.timing_ps()
    assert {key: timing[key] / 1000 for key in timings_ns} == timings_ns


def without(profile: Profile, key: str) -> Profile:
    figures = {k: figure for k, figure in profile.figures.items() if k != key}
    return profile.model_copy(update={"figures": figures})


def with_value(profile: Profile, key: str, value: float) -> Profile:
    figure = profile.figures[key].model_copy(update={"value": value})
    return profile.model_copy(update={"figures": {**profile.figures, key: figure}})


@pytest.mark.parametrize("key", ["clock_ns", "tRCD_cycles", "tRAS_cycles", "CWL_cycles", "banks",
                                 "row_bytes", "IDD3N_mA", "chips", "vdd_V"])  # fmt: skip
def test_an_incomplete_device_is_refused_by_its_figure(key: str) -> None:
    named = key.partition("_")[0]
    if key == "tRCD_cycles":  # without it, it is no memory of commands: another kind is asked for
        named = "read_latency_ns"
    with pytest.raises(BadInputError, match=named):
        Device.of(without(load_profile("ddr4-3200"), key))


@pytest.mark.parametrize(
    ("key", "value"),
    [("tRAS_cycles", 5), ("tCCD_cycles", 2), ("banks", 3), ("tREFI_cycles", 600),
     ("IDD4R_mA", 10)],
)  # fmt: skip
def test_a_contradictory_device_is_refused_by_its_figure(key: str, value: float) -> None:
    named = key.partition("_")[0]
    with pytest.raises((BadInputError, _native.NativeError), match=named):
        Device.of(with_value(load_profile("ddr4-3200"), key, value))


def test_every_shipped_profile_is_simulated_or_refused_by_a_figure() -> None:
    refused = {}
    for name in profile_names():
        try:
            Device.of(load_profile(name))
        except BadInputError as error:
            refused[name] = error.what
    assert all("no figure" in what for what in refused.values()), refused
    assert not {*COMMANDS, "optane-100-lens"} & refused.keys()


def chase_ns(device: Device, region_bytes: int) -> float:
    """Mean of a pointer chase over a region, after a first pass that warms buffers."""
    plan = _native.SimPlan("fixed", False, [], [], 1, 1, 0, 0)
    lines = region_bytes // 64
    warm = min(4 * lines, 400_000)

    def run(count: int) -> tuple[int, int]:
        source = _native.SyntheticSource("chase", count, region_bytes, 0.0, 0.0, 1)
        out = _native.simulate(
            source, device.native, device.native, plan, "fast", "open", 0.0, "window", 10, True,
            2**63,
        )  # fmt: skip
        return out["end_ps"], out["requests"]

    (first, _), (all_of_it, _) = run(warm), run(warm + 20_000)
    return (all_of_it - first) / 20_000 / 1000


def test_the_optane_like_device_follows_the_published_chase() -> None:
    """Plateaus are read off the curve; where they bend, and how, comes out of the buffers."""
    profile = load_profile("optane-100-lens")
    device = Device.of(profile)
    errors = {
        region: chase_ns(device, int(region)) / published - 1
        for region, published in profile.curve("read_latency_by_region_ns", block_bytes=64)
        if region in (128, 4096, 16384, 19456, 25600, 31744, 65536, 131072, 1 << 20, 16 << 20,
                      20971520, 32 << 20, 128 << 20)
    }  # fmt: skip
    assert len(errors) == 13
    assert max(map(abs, errors.values())) <= 0.10, errors
