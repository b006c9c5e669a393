"""Shipped devices as the simulator takes them: their timings, what is refused, the LENS curve."""

# ruff: noqa: N815 - timings are named as their sheets name them
from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import pytest

from nearfar import _native
from nearfar.errors import BadInputError
from nearfar.profiles import load_profile, profile_names
from nearfar.records.profile import Figure, Profile
from nearfar.simulation.access_counts import AccessCosts
from nearfar.simulation.device_keys import known_keys
from nearfar.simulation.devices import Device, resolve

Command = tuple[int, str, int, int, int, int]


@dataclass(frozen=True)
class Sheet:
    """Timings that the source of a profile prints, in whole clocks; `groups` of banks."""

    clock_ps: int
    tRCD: int
    tRP: int
    tRAS: int
    CL: int
    CWL: int
    burst: int
    tCCD: int
    tRRD: int
    tWTR: int
    tWR: int
    tRTP: int
    tRTRS: int = 0
    tRFC: int = 0
    tREFI: int = 0
    tFAW: int = 0
    tRRDpre: int = 0
    t32AW: int = 0
    tRCDWR: int | None = None
    tCCDLWR: int | None = None
    tRPclean: int | None = None
    tCCDL: int | None = None
    tRRDL: int | None = None
    tWTRL: int | None = None
    groups: int = 1


_DDR5 = Sheet(625, tRCD=24, tRP=24, tRAS=52, CL=24, CWL=22, burst=8, tCCD=8, tRRD=8, tWTR=4,
              tWR=48, tRTP=12, tRTRS=2, tRFC=472, tREFI=6240, tFAW=32, tCCDL=8, tCCDLWR=16,
              tRRDL=8, tWTRL=16, groups=8)  # fmt: skip
#: The thesis prints ns or cycles, its simulator's clock is 1.5 ns; the rest is DRAMSim2's DDR3.
_SNU = Sheet(1500, tRCD=7, tRP=7, tRAS=24, CL=10, CWL=9, burst=4, tCCD=4, tRRD=3, tWTR=5, tWR=10,
             tRTP=5, tRTRS=1, tRFC=50, tREFI=2604, tFAW=20, tRRDpre=3)  # fmt: skip
_SNU_PCM = replace(_SNU, tRFC=0, tREFI=0, tFAW=0)
SHEETS = {
    "ddr3-1333": Sheet(1500, tRCD=10, tRP=10, tRAS=24, CL=10, CWL=9, burst=4, tCCD=4, tRRD=4,
                       tWTR=5, tWR=10, tRTP=5, tRTRS=1, tRFC=74, tREFI=5200, tFAW=20),
    "ddr4-3200": Sheet(625, tRCD=22, tRP=22, tRAS=52, CL=22, CWL=16, burst=4, tCCD=4, tRRD=4,
                       tWTR=4, tWR=24, tRTP=12, tRTRS=1, tRFC=560, tREFI=12480, tFAW=34,
                       tCCDL=8, tRRDL=8, tWTRL=12, groups=4),
    "ddr5-3200": _DDR5,
    "cxl-ddr5": _DDR5,
    "dram-snu": _SNU,
    "pcm-snu-ns": replace(_SNU_PCM, tRCD=25, tRP=67, tRAS=25, tRRD=2, tRRDpre=12),
    "pcm-snu-cycles": replace(_SNU_PCM, tRCD=37, tRP=100, tRAS=37, tRRD=3, tRRDpre=18),
    "pcm-lee": Sheet(2500, tRCD=22, tRP=60, tRAS=22, CL=5, CWL=4, burst=4, tCCD=4, tRRD=2, tWTR=3,
                     tWR=6, tRTP=3, tRRDpre=11, tRPclean=1),
    "hbm2-2000": Sheet(1000, tRCD=14, tRP=14, tRAS=34, CL=14, CWL=4, burst=2, tCCD=2, tRRD=4,
                       tWTR=6, tWR=16, tRTP=6, tRTRS=2, tRFC=260, tREFI=3900, tFAW=30, tCCDL=2,
                       tRRDL=6, tWTRL=8, groups=4),
    "hbm3-6400": Sheet(625, tRCD=31, tRCDWR=15, tRP=26, tRAS=45, CL=20, CWL=10, burst=4, tCCD=4,
                       tRRD=4, tWTR=7, tWR=33, tRTP=13, tRTRS=6, tRFC=320, tREFI=6240, tFAW=24,
                       tCCDL=8, tRRDL=5, tWTRL=10, groups=4),
    "gddr6-12000": Sheet(660, tRCD=24, tRCDWR=20, tRP=24, tRAS=54, CL=24, CWL=16, burst=1, tCCD=3,
                         tRRD=9, tWTR=7, tWR=16, tRTP=3, tRTRS=1, tRFC=126, tREFI=11862, tFAW=32,
                         t32AW=420),
    "lpddr5-6400": Sheet(1250, tRCD=15, tRP=15, tRAS=34, CL=17, CWL=9, burst=2, tCCD=2, tRRD=4,
                         tWTR=5, tWR=28, tRTP=8, tRTRS=2, tRFC=112, tREFI=3125, tFAW=16, tCCDL=4,
                         tRRDL=4, tWTRL=12, groups=4),
    "ddr5-4800-same-bank": Sheet(416, tRCD=34, tRP=34, tRAS=77, CL=34, CWL=32, burst=8, tCCD=8,
                                 tRRD=8, tWTR=6, tWR=72, tRTP=18, tRTRS=2, tRFC=313, tREFI=4688,
                                 tFAW=48, tCCDL=12, tCCDLWR=24, tRRDL=12, tWTRL=24, groups=8),
}  # fmt: skip


def at(clock: int, act: str, bank: int = 0, group: int = 0) -> Command:
    """A command to row 0 of a bank."""
    return (clock, act, 0, group, bank, 0)


def recovered(s: Sheet) -> int:
    """A clock at which nothing binds that happened to a row since clock 0; no refresh is due."""
    return s.tRAS + s.CWL + s.burst + s.tWR + 10


Case = tuple[list[Command], int, Command]


def of_one_bank(s: Sheet) -> dict[str, Case]:
    """Rules: what goes before, the first legal clock, the command that waits."""
    opened, far = at(0, "activate"), recovered(s)
    read_at, write_end = s.tRAS, s.tRAS + s.CWL + s.burst
    clean = s.tRP if s.tRPclean is None else s.tRPclean
    return {
        "tRCD": ([opened], s.tRCD, at(0, "read")),
        "tRCDWR": (
            [opened],
            s.tRCD if s.tRCDWR is None else s.tRCDWR,
            at(0, "write"),
        ),
        "tRAS": ([opened], s.tRAS, at(0, "precharge")),
        "tRTP": ([opened, at(read_at, "read")], read_at + s.tRTP, at(0, "precharge")),
        "tWR": ([opened, at(read_at, "write")], write_end + s.tWR, at(0, "precharge")),
        "tRP": (
            [opened, at(read_at, "write"), at(far, "precharge")],
            far + s.tRP,
            at(0, "activate"),
        ),
        "tRP of a row that was read": (
            [opened, at(read_at, "read"), at(far, "precharge")],
            far + clean,
            at(0, "activate"),
        ),
        "tRFC": ([at(0, "refresh")], s.tRFC, at(0, "activate")),
    }


def of_two_banks(s: Sheet) -> dict[str, Case]:
    """Likewise; the other bank lies in the same group, or (of devices with groups) in another."""
    opened, far, wrote = at(0, "activate"), recovered(s), s.CWL + s.burst
    near_by = [opened, at(s.tRRD if s.tRRDL is None else s.tRRDL, "activate", 1)]
    cases: dict[str, Case] = {
        "tRRDL": ([opened], near_by[1][0], at(0, "activate", 1)),
        "tCCDL": (
            [*near_by, at(far, "read")],
            far + (s.tCCD if s.tCCDL is None else s.tCCDL),
            at(0, "read", 1),
        ),
        "tCCDLWR": (
            [*near_by, at(far, "write")],
            far + (s.tCCDLWR or s.tCCDL or s.tCCD),
            at(0, "write", 1),
        ),
        "tWTRL": (
            [*near_by, at(far, "write")],
            far + wrote + (s.tWTR if s.tWTRL is None else s.tWTRL),
            at(0, "read", 1),
        ),
        "data bus": (
            [*near_by, at(far, "read")],
            far + s.CL + s.burst + s.tRTRS - s.CWL,
            at(0, "write", 1),
        ),
        "tRRDpre": (
            [*near_by, at(far, "write"), at(far + s.tCCD, "write", 1), at(2 * far, "precharge")],
            2 * far + s.tRRDpre,
            at(0, "precharge", 1),
        ),
    }
    if s.tFAW > 4 * s.tRRD:  # five activates as close as tRRD allows
        other = (
            [(n, 0) for n in range(5)] if s.groups == 1 else [*((0, n) for n in range(4)), (1, 0)]
        )
        four = [at(n * s.tRRD, "activate", *where) for n, where in enumerate(other[:4])]
        cases["tFAW"] = (four, s.tFAW, at(0, "activate", *other[4]))
    if s.groups > 1:
        apart = [opened, at(s.tRRD, "activate", 0, 1)]
        cases |= {
            "tRRD": ([opened], s.tRRD, at(0, "activate", 0, 1)),
            "tCCD": ([*apart, at(far, "read")], far + s.tCCD, at(0, "read", 0, 1)),
            "tWTR": ([*apart, at(far, "write")], far + wrote + s.tWTR, at(0, "read", 0, 1)),
        }
    return cases


@pytest.mark.parametrize("name", SHEETS)
def test_each_timing_is_legal_at_its_clock_and_illegal_one_before(name: str) -> None:
    device, sheet = Device.of(load_profile(name)).native, SHEETS[name]
    for case, (before, legal, last) in (of_one_bank(sheet) | of_two_banks(sheet)).items():
        rule = case.partition(" of ")[0]
        if (rule == "tRFC" and not sheet.tRFC) or (rule == "tRRDpre" and not sheet.tRRDpre):
            continue
        assert device.check([*before, (legal, *last[1:])]) == [], case
        found = dict(device.check([*before, (legal - 1, *last[1:])]))
        assert found.get(rule, found.get(rule.removesuffix("WR").removesuffix("L"))) == 1, (
            case,
            found,
        )


@pytest.mark.parametrize("name", SHEETS)
def test_the_clocks_of_a_device_are_those_of_its_sheet(name: str) -> None:
    timing, sheet = Device.of(load_profile(name)).native.timing_ps(), SHEETS[name]
    assert timing["clock"] == sheet.clock_ps
    clocks = {key: ps / sheet.clock_ps for key, ps in timing.items() if key != "clock"}
    reported = {
        key: value
        for key, value in asdict(sheet).items()
        if value is not None and key not in ("clock_ps", "groups")
    }
    assert {key: clocks[key] for key in reported} == reported


def test_every_memory_of_commands_has_a_sheet() -> None:
    timed = {
        name
        for name in profile_names()
        if {"tRAS_ns", "tRAS_cycles"} & load_profile(name).figures.keys()
    }
    assert timed == set(SHEETS)


def without(profile: Profile, key: str) -> Profile:
    figures = {k: figure for k, figure in profile.figures.items() if k != key}
    return profile.model_copy(update={"figures": figures})


def with_value(profile: Profile, key: str, value: float) -> Profile:
    figure = profile.figures[key].model_copy(update={"value": value})
    return profile.model_copy(update={"figures": {**profile.figures, key: figure}})


@pytest.mark.parametrize(
    "key",
    [
        "clock_ns",
        "tRCD_cycles",
        "tRAS_cycles",
        "CWL_cycles",
        "banks",
        "row_bytes",
        "IDD3N_mA",
        "chips",
        "vdd_V",
    ],
)
def test_an_incomplete_device_is_refused_by_its_figure(key: str) -> None:
    with pytest.raises(BadInputError, match=f"no figure {key.partition('_')[0]}"):
        Device.of(without(load_profile("ddr4-3200"), key))


@pytest.mark.parametrize("name", SHEETS)
def test_without_tRCD_a_memory_of_commands_is_still_one(name: str) -> None:  # noqa: N802
    profile = load_profile(name)
    for key in {"tRCD_ns", "tRCD_cycles"} & profile.figures.keys():
        with pytest.raises(BadInputError, match="no figure tRCD"):
            Device.of(without(profile, key))


@pytest.mark.parametrize(
    ("key", "wrong", "meant"),
    [
        ("tRFC_cycles", "tRFFC_cycles", "tRFC_cycles"),
        ("IDD5_mA", "IDD_5_mA", "IDD5_mA"),
        ("tFAW_cycles", "lag_ns", None),
    ],
)
def test_an_unknown_figure_is_refused_by_its_key(key: str, wrong: str, meant: str | None) -> None:
    profile = load_profile("ddr4-3200")
    figures = {wrong if k == key else k: figure for k, figure in profile.figures.items()}
    misspelt = profile.model_copy(update={"figures": figures})
    for refuses in (Device.of, AccessCosts.of):
        with pytest.raises(BadInputError, match=f"unknown figure {wrong}") as refused:
            refuses(misspelt)
        assert (meant or "rename or remove it") in refused.value.next_step


def test_all_figures_that_nearfar_ships_and_measures_are_known() -> None:
    written = {"msync_latency_ns", "copy_bandwidth_by_threads_bytes_per_s", "first_touch_ns"}
    shipped = {key for name in profile_names() for key in load_profile(name).figures}
    assert written | shipped <= known_keys()


@pytest.mark.parametrize(
    ("copied", "both"),
    [
        (30e9, 45e9),  # stores that read their line first: all counted bytes are read, half written
        (36e9, 36e9),  # faster than reads: its stores read nothing
    ],
)
def test_both_directions_together_have_the_traffic_of_a_copy(copied: float, both: float) -> None:
    profile = load_profile("optane-100")
    rates = {"read": 33e9, "write": 20e9, "copy": copied}
    figures = {
        f"{name}_bandwidth_bytes_per_s": Figure(unit="B/s", value=rate, source="x", confidence="C")
        for name, rate in rates.items()
    }
    profile = profile.model_copy(update={"figures": profile.figures | figures})
    alone = without(profile, "bandwidth_by_read_share_bytes_per_s")
    assert resolve(alone).figures["both_bandwidth"] == both


def test_banks_that_do_not_fill_their_rank_are_refused() -> None:
    with pytest.raises(BadInputError, match="rank_bytes of dram-snu"):
        Device.of(with_value(load_profile("dram-snu"), "bank_bytes", 1 << 27))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tRAS_cycles", 5),
        ("tCCD_cycles", 2),
        ("banks", 3),
        ("tREFI_cycles", 600),
        ("IDD4R_mA", 10),
        ("CL_cycles", 1e17),
        ("channels", 1.5),
    ],
)
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
    assert not {*SHEETS, "optane-100-lens"} & refused.keys()


def chase_ns(device: Device, region_bytes: int) -> float:
    """Mean of a pointer chase over a region, after a first pass that warms buffers."""
    plan = _native.SimPlan("fixed", False, [], [], 1, 1, 0, 0)
    lines = region_bytes // 64
    warm = min(4 * lines, 400_000)

    def run(count: int) -> tuple[int, int]:
        source = _native.SyntheticSource("chase", count, region_bytes, 0.0, 0.0, 1)
        out = _native.simulate(
            source,
            device.native,
            device.native,
            _native.SimController("open", 0.0, "fr-fcfs", 0, 32, 16, 1, "rorabacobgch", None, None),
            plan,
            "fast",
            "window",
            10,
            True,
            1,
            2**63,
            False,
        )
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
        if region
        in (
            128,
            4096,
            16384,
            19456,
            25600,
            31744,
            65536,
            131072,
            1 << 20,
            16 << 20,
            20971520,
            32 << 20,
            128 << 20,
        )
    }
    assert len(errors) == 13
    assert max(map(abs, errors.values())) <= 0.10, errors
