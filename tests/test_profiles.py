"""Device profiles and hosts: what is shipped, how files are read, and how they are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearfar import profiles
from nearfar.errors import BadInputError, MachineError
from nearfar.machine.root import Root
from nearfar.profiles.sheets import read_datasheet, read_profile, to_toml, write_profile
from nearfar.profiles.this_host import frequency_of, host_of
from nearfar.records.profile import (
    COUNT_SUFFIXES,
    SCHEMA_VERSION,
    Datasheet,
    Figure,
    Host,
    Profile,
    unit_of,
)

DEVICES = {
    "ucy-optane", "optane-100", "optane-100-lens", "optane-200", "oslo-nvdimm", "pcm-snu-ns",
    "pcm-snu-cycles", "pcm-lee", "dram-snu", "cxl-asic", "cxl-fpga", "ddr4", "ddr5", "ddr5-remote",
    "hbm", "ssd-nvme", "ssd-pm983", "ssd-s4600", "ssd-optane", "optane-200-4x128",
    "ddr3-1333", "ddr4-3200", "ddr5-3200", "cxl-ddr5", "ddr5-4800-same-bank", "lpddr5-6400",
    "hbm2-2000", "hbm3-6400", "gddr6-12000",
}  # fmt: skip
HOSTS = {"xeon-5218r", "xeon-6130", "xeon-5317", "snu-2014"}


def shipped() -> list[Datasheet]:
    devices = [profiles.load_profile(name) for name in sorted(DEVICES)]
    return [*devices, *(profiles.load_host(name) for name in sorted(HOSTS))]


def test_every_promised_name_is_shipped() -> None:
    assert set(profiles.profile_names()) == DEVICES
    assert set(profiles.host_names()) == HOSTS | {"this"}


@pytest.mark.parametrize("sheet", shipped(), ids=lambda sheet: sheet.name)
def test_shipped(sheet: Datasheet) -> None:
    folder = Path(profiles.__file__).parent / f"{sheet.kind}s"
    assert (folder / f"{sheet.name}.toml").exists(), "a file is called by the name inside"
    assert "Missing" in sheet.description or not sheet.figures
    used = {figure.source for figure in sheet.figures.values()}
    assert used == set(sheet.sources), "no source without a figure"
    for key, figure in sheet.figures.items():
        assert figure.confidence in "ABC"
        assert figure.unit == ("EUR/GiB" if key == "price_per_gib" else unit_of(key)), key
        assert figure.origin is None, "published figures were not made by nearfar"
    assert read_datasheet(folder / f"{sheet.name}.toml") == sheet


@pytest.mark.parametrize("sheet", shipped(), ids=lambda sheet: sheet.name)
def test_shipped_files_contain_no_path_of_the_build(sheet: Datasheet) -> None:
    assert not re.search(r"(?:^|[\s\"'(])(?:/\w+|\.\.?)/", to_toml(sheet)), "a path"


@pytest.mark.parametrize("name", ["./mine", "mine", "mine.toml", "sub/mine", "hbm"])
def test_what_can_be_loaded_is_a_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if name != "hbm":
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(to_toml(profiles.load_profile("ddr5")))
    assert profiles.is_profile(name)
    assert profiles.load_profile(name).name == ("hbm" if name == "hbm" else "ddr5")


@pytest.mark.parametrize(
    "name",
    ["dram", "dram,pages=4k", "numa:1", "shm:", "fsdax:/mnt/pmem,capacity=8GiB", "file:/a/b.toml",
     "paced:dram@./mine.toml", "folder", "nothing", "", "x" * 300],
)  # fmt: skip
def test_tiers_and_unknown_names_are_no_profiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("dram").touch()
    assert not profiles.is_profile(name)


def test_figures_that_models_are_built_on() -> None:
    ucy = profiles.load_profile("ucy-optane")
    assert (ucy.scalar("read_latency_ns"), ucy.scalar("write_latency_ns")) == (305, 90)
    assert ucy.scalar("read_bandwidth_bytes_per_s") == 7.45e9
    host = profiles.load_host("xeon-5218r")
    assert host.scalar("l3_load_ns") == 26
    assert host.figure("l3_load_ns").interval() == (15, 35)
    assert host.figure("l3_load_ns").confidence == "C"
    cycles, ns = (profiles.load_profile(f"pcm-snu-{unit}") for unit in ("cycles", "ns"))
    assert (cycles.timing_ns("tRCD"), ns.timing_ns("tRCD")) == (55.5, 37)
    assert (cycles.timing_ns("CL"), ns.timing_ns("CL")) == (15, 15)
    reads = profiles.load_profile("optane-100").curve("read_bandwidth_by_threads_bytes_per_s")
    assert reads[0] == (1, round(2.88 * 2**30))
    loaded = profiles.load_profile("ddr4").curve("read_latency_by_load_ns", read_share=0.5)
    assert loaded == [(0, 90), (87e9, 272)]


def test_the_published_chase_has_its_buffers() -> None:
    lens = profiles.load_profile("optane-100-lens")
    reads = lens.curve("read_latency_by_region_ns", block_bytes=64)
    assert [region for region, _ in reads] == sorted(region for region, _ in reads)
    plateau = dict(reads)
    assert plateau[16 << 10] == pytest.approx(180, rel=0.05)
    assert plateau[1 << 20] == pytest.approx(310, rel=0.02)
    assert plateau[128 << 20] == pytest.approx(375, rel=0.02)
    assert lens.curve("buffer_by_level_bytes") == [(1, 16 << 10), (2, 16 << 20)]


def test_invalid_curves_are_refused_with_the_reason() -> None:
    lens = profiles.load_profile("optane-100-lens")
    with pytest.raises(BadInputError, match="all but one must be given"):
        lens.curve("read_latency_by_region_ns")
    with pytest.raises(BadInputError, match="no point with block_bytes = 63"):
        lens.curve("read_latency_by_region_ns", block_bytes=63)
    with pytest.raises(BadInputError, match="all but one"):
        lens.curve("read_latency_ns")
    with pytest.raises(BadInputError, match="is a curve"):
        lens.scalar("buffer_by_level_bytes")


def test_a_figure_that_is_absent_names_profile_key_and_next_step() -> None:
    with pytest.raises(BadInputError, match="device hbm has no figure endurance_writes") as refused:
        profiles.load_profile("hbm").figure("endurance_writes")
    assert "nearfar show hbm" in refused.value.next_step


def test_unknown_names_suggest_near_ones() -> None:
    with pytest.raises(BadInputError, match="no device profile optane-10") as refused:
        profiles.load_profile("optane-10")
    assert "did you mean: optane-100" in refused.value.next_step
    with pytest.raises(BadInputError, match="no host nothing") as refused:
        profiles.load_host("nothing")
    assert "name one of: snu-2014" in refused.value.next_step


def test_a_path_will_do(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    write_profile(profiles.load_profile("ddr5"), path)
    assert profiles.load_profile(path) == profiles.load_profile("ddr5")
    assert profiles.load_profile(str(path)).name == "ddr5"
    assert [p.name for p in tmp_path.iterdir()] == ["mine.toml"]


def test_this_host_is_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    host = profiles.load_host("this")
    assert host.scalar("page_bytes") % 4096 == 0
    assert host.scalar("cores") >= 1
    assert {figure.origin for figure in host.figures.values()} == {"claimed"}
    assert "l3_load_ns" not in host.figures, "it was not measured"


def test_this_host_reports_its_frequency_if_known() -> None:
    from nearfar.machine.topology import machine_from

    machine = machine_from(Path(__file__).parent / "fixtures" / "machines" / "two-sockets")
    assert "frequency_hz" not in host_of(machine, None, 4096).figures
    host = host_of(machine, Figure(unit="Hz", value=2.1e9, source="kernel", confidence="B"), 4096)
    assert host.scalar("frequency_hz") == 2.1e9
    assert host.scalar("sockets") == 2
    assert host.scalar("cores") * host.scalar("sockets") == len(machine.one_cpu_per_core())


@pytest.mark.parametrize(
    ("name", "mhz", "hertz", "confidence"),
    [
        ("CPU @ 2.10GHz", "2596.122", 2.1e9, "B"),
        ("EPYC", "2596.122", 2596.122e6, "C"),
        ("EPYC", "0.000", None, None),
        ("EPYC", "unknown", None, None),
    ],
)
def test_the_frequency_is_the_named_one_or_that_of_the_moment(
    tmp_path: Path, name: str, mhz: str, hertz: float | None, confidence: str | None
) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cpuinfo").write_text(f"model name\t: {name}\ncpu MHz\t\t: {mhz}\n")
    found = frequency_of(Root(tmp_path))
    assert (found and found.value) == hertz
    assert (found and found.confidence) == confidence
    assert found is None or (found.note is not None) == (confidence == "C")


# Files by hand, damaged and old


HAND = """\
# written by hand
schema_version = 1
kind = "device"
name = "mine"
title = "My memory"
description = "From its data sheet."

[sources]
sheet = "Data sheet, 2024"

[figures.read_latency_ns]
value = 250.5
unit = "ns"
low = 200
high = 300
source = "sheet"
confidence = "B"

[figures.read_bandwidth_by_threads_bytes_per_s]
x = ["threads"]
points = [[1, 1e9],
  [2, 2e9]]
ranges = [[0.9e9, 1.1e9], [1.5e9, 2e9]]
unit = "B/s"
source = "sheet"
confidence = "B"
origin = "measured"
"""


def test_a_file_written_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(HAND)
    mine = profiles.load_profile(file)
    assert mine.figure("read_latency_ns").interval() == (200, 300)
    assert mine.curve("read_bandwidth_by_threads_bytes_per_s") == [(1, 1e9), (2, 2e9)]
    assert mine.source_of("read_latency_ns") == "Data sheet, 2024"


@pytest.mark.parametrize("date", ["2024", "2024-05", "2024-05-31", "2024-05-31T08:00:00Z"])
def test_whole_numbers_and_dates_by_hand(tmp_path: Path, date: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(HAND.replace("250.5", f'250\ndate = "{date}"'))
    mine = profiles.load_profile(file)
    assert (mine.scalar("read_latency_ns"), mine.figure("read_latency_ns").date) == (250, date)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('confidence = "B"\n\n', "\n", "line 11: figures.read_latency_ns.confidence: Field requ"),
        ('confidence = "B"\n\n', 'confidence = "D"\n\n', "line 17: figures.read_latency_ns.conf"),
        (
            "value = 250.5",
            "value = 305",
            "line 11: figures.read_latency_ns: the value 305 is outside",
        ),
        ("value = 250.5", "value = -1", "line 12: figures.read_latency_ns.value: Input should"),
        ("value = 250.5", 'value = "250"', "line 12: figures.read_latency_ns.value: Input should"),
        ("value = 250.5", "value = true", "line 12: figures.read_latency_ns.value: Input should"),
        (
            "[1, 1e9]",
            "[true, 1e9]",
            "read_bandwidth_by_threads_bytes_per_s.points.0.0: Input should",
        ),
        ('250.5\nunit = "ns"\nlow = 200', '0\nunit = "ns"\nlow = 0', "must be positive"),
        ("low = 200", "low = 0", "line 11: figures.read_latency_ns: a latency or a bandwidth must"),
        ("[0.9e9, 1.1e9]", "[0, 1.1e9]", "bandwidth must be positive"),
        ("high = 300", 'high = 300\ndate = "soon"', "soon is not an ISO 8601 date"),
        ("high = 300", 'high = 300\ndate = "2024-13"', "line 16: figures.read_latency_ns.date"),
        ("high = 300", 'high = 300\ndate = "2024-02-30"', "line 16: figures.read_latency_ns.date"),
        ("value = 250.5", "value = inf", "line 12: figures.read_latency_ns.value"),
        ("value = 250.5\n", "", "line 11: figures.read_latency_ns: give either value or points"),
        ("high = 300\n", "", "line 11: figures.read_latency_ns: a range has both"),
        ('unit = "ns"', 'unit = "us"', "line 11: figures.read_latency_ns: the key says ns"),
        (
            "low = 200",
            "lowest = 200",
            "line 14: figures.read_latency_ns.lowest: Extra inputs are not permitted; did you mean "
            "low?",
        ),
        ('title = "My', 'titel = "My', "line 5: titel: Extra inputs are not permitted; did you"),
        ("[sources]", "[timings]\ntRCD_ns = 3\n\n[sources]", "line 8: timings: Extra inputs"),
        (
            'origin = "measured"\n',
            "[figures.read_bandwidth_by_threads_bytes_per_s.note_of]\nme = 1\n",
            "figures.read_bandwidth_by_threads_bytes_per_s.note_of: Extra inputs are not permitted",
        ),
        ('source = "sheet"', 'source = "me"', "line 11: figures.read_latency_ns: the source me"),
        ("read_latency_ns", "read_latency", "line 11: figures.read_latency: the key does not end"),
        ("read_latency_ns", "latency_by_cpu_ns", "a key with _by_ belongs to points"),
        ("read_latency_ns", "price_per_gib", "a price has a unit such as EUR/GiB"),
        ('x = ["threads"]\n', "", "line 19: figures.read_bandwidth_by_threads_bytes_per_s: points"),
        ('["threads"]', '["color"]', "the coordinate color does not end in a unit"),
        ("[1, 1e9]", "[1e9]", "every point needs 1 coordinates and a value"),
        ("[1, 1e9]", "[2, 1e9]", "two points have the same coordinates"),
        ("[1, 1e9]", "[1, 2e9]", "a point is outside its range"),
        (", [1.5e9, 2e9]]", "]", "ranges must be as many as points"),
        ("schema_version = 1\n", "", "line 1: schema_version is missing"),
        ("schema_version = 1", "schema_version = 2", "line 2: schema_version 2"),
        ("schema_version = 1", "schema_version = 0", "line 2: schema_version 0"),
        ("schema_version = 1", 'schema_version = "1"', "line 2: schema_version '1'"),
        ("schema_version = 1", "schema_version = true", "line 2: schema_version True"),
        ('kind = "device"', 'kind = "host"', "line 3: kind is 'host', and a device was needed"),
        ('name = "mine"', 'name = ""', "line 4: name: String should have at least 1"),
        ('title = "My memory"', "title = My memory", "line 5, column 9: Invalid value"),
        ("value = 250.5", "value = 250.5\nvalue = 1", "line 13, column 10: Cannot overwrite"),
    ],
)
def test_damage_is_refused_with_file_line_and_reason(
    tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    assert old in HAND
    file = tmp_path / "mine.toml"
    file.write_text(HAND.replace(old, new, 1))
    with pytest.raises(BadInputError, match=re.escape(complaint)) as refused:
        profiles.load_profile(file)
    assert str(file) in refused.value.what
    assert refused.value.next_step


@pytest.mark.parametrize("share", [0.0, 0.2, 0.55, 0.9])
def test_truncated(tmp_path: Path, share: float) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(HAND[: int(len(HAND) * share)])
    with pytest.raises(BadInputError, match=r"mine\.toml.* line \d+"):
        profiles.load_profile(file)


def test_missing_and_unreadable(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no such file"):
        profiles.load_profile(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInputError, match="cannot read"):
        profiles.load_profile(tmp_path / "binary.toml")
    with pytest.raises(MachineError, match="cannot write"):
        write_profile(profiles.load_profile("hbm"), tmp_path / "nowhere" / "x.toml")


def test_a_price_needs_a_date() -> None:
    price = Figure(unit="EUR/GiB", value=3, source="s", confidence="B")
    with pytest.raises(ValueError, match="a price needs a date"):
        Profile(
            name="n",
            title="t",
            description="d",
            sources={"s": "S"},
            figures={"price_per_gib": price},
        )


# Profiles that are written and read back


_TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=30
).filter(lambda text: text == text.strip())
_NUMBER = st.one_of(
    st.floats(min_value=0, allow_nan=False, allow_infinity=False),
    st.integers(min_value=0, max_value=2**53).map(float),
)

_DATE = st.one_of(st.dates(), st.datetimes()).map(lambda moment: moment.isoformat())


@st.composite
def _scalars(draw: st.DrawFn) -> Figure:
    low, value, high = sorted(draw(st.lists(_NUMBER, min_size=3, max_size=3)))
    ranged = draw(st.booleans())
    return Figure(
        unit="ns",
        value=value,
        low=low if ranged else None,
        high=high if ranged else None,
        source="s",
        confidence=draw(st.sampled_from(["A", "B", "C"])),
        date=draw(st.none() | _DATE),
        note=draw(st.none() | _TEXT),
        origin=draw(st.none() | st.sampled_from(["measured", "modelled"])),  # type: ignore[arg-type]
    )


@st.composite
def _curves(draw: st.DrawFn) -> Figure:
    at = draw(st.lists(st.tuples(_NUMBER, _NUMBER), min_size=1, max_size=40, unique=True))
    points = [[*where, draw(_NUMBER)] for where in at]
    ranged = draw(st.booleans())
    return Figure(
        unit="B/s",
        x=["region_bytes", "threads"],
        points=points,
        ranges=[(value, value) for *_, value in points] if ranged else None,
        source="s",
        confidence="A",
    )


@given(text=_TEXT, scalar=_scalars(), curve=_curves(), kind=st.sampled_from([Profile, Host]))
def test_a_written_file_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    text: str,
    scalar: Figure,
    curve: Figure,
    kind: type[Profile | Host],
) -> None:
    sheet = kind(
        name=text,
        title=text,
        description=text,
        machine=text,
        sources={"s": text},
        figures={"a_ns": scalar, "a_by_region_bytes_per_s": curve},
    )
    file = tmp_path_factory.mktemp("sheet") / "x.toml"
    write_profile(sheet, file)
    assert read_datasheet(file) == sheet
    assert max(map(len, to_toml(curve_only(curve)).splitlines())) <= 110


def curve_only(curve: Figure) -> Profile:
    return Profile(
        name="n",
        title="t",
        description="d",
        sources={"s": "s"},
        figures={"a_by_region_bytes_per_s": curve},
    )


def test_the_version_is_written_first(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    write_profile(profiles.load_profile("hbm"), file)
    assert file.read_text().startswith(f"schema_version = {SCHEMA_VERSION}\n")
    assert read_profile(file).kind == "device"


def test_published_streams_are_whole() -> None:
    far = profiles.load_profile("oslo-nvdimm")
    near = profiles.load_host("xeon-6130")
    for kernel in ("copy", "scale", "add", "triad"):
        curve = far.curve(f"{kernel}_bandwidth_by_threads_bytes_per_s")
        assert [threads for threads, _ in curve] == list(range(1, 33))
        assert len(near.curve(f"near_{kernel}_bandwidth_by_threads_bytes_per_s")) == 32
    assert far.curve("copy_bandwidth_by_threads_bytes_per_s")[0] == (1, 5036.7e6)


def test_the_documented_count_keys_are_those_that_are_accepted() -> None:
    page = Path(__file__).parent.parent / "docs" / "formats" / "profile.md"
    (row,) = re.findall(r"\| (.*) \| `count` \|", page.read_text())
    assert re.findall(r"`(\w+)`", row) == list(COUNT_SUFFIXES)
