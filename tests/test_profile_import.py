"""``nearfar profile import``: figures of other tools become profiles."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import RunNearfar
from nearfar.errors import BadInputError
from nearfar.measure.progress import silent
from nearfar.profiles import load_profile
from nearfar.profiles.imports import import_profile
from nearfar.profiles.loaded_curves import Loaded, saturates
from nearfar.workflows import sim_memories

DATA = Path(__file__).parent / "data"
GB = 1e9
#: Idle latency in ns and peak bandwidth in GB/s that the authors' own figures (memory_curves.json)
#: have: the least load at the highest fraction of reads, and the most of all curves.
PUBLISHED = {
    "cte-amd": (120.5, 143.8),
    "epeec4": (90.2, 106.2),
    "grace": (176.6, 448.9),
    "mn5-acc": (110.9, 267.4),
    "mn5-hbm": (129.0, 833.4),
    "mn5-gpp-highmem": (117.2, 263.5),
    "mn5-gpp-avx2": (116.3, 233.5),
    "mn5-gpp-avx512": (117.2, 240.6),
}
STREAM = """STREAM version $Revision: 5.10 $
Number of Threads requested = 8
Number of Threads counted = 8
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:           90000.5     0.017     0.017     0.018
Scale:          80000.0     0.017     0.017     0.018
Add:            85000.0     0.027     0.027     0.028
Triad:          85100.0     0.027     0.027     0.028
Solution Validates: avg error less than 1.000000e-13 on all three arrays
"""
MESS = "read_pct_rounded,bandwidth_mean,latency_mean\n"
MLC = """Measuring idle latencies for random access (in ns)...
\t\tNuma node
Numa node\t     0\t
       0\t  {latency}\t
Measuring Peak Injection Memory Bandwidths for the system
ALL Reads        :\t{rate}\t
"""


@pytest.mark.parametrize("system", PUBLISHED)
def test_curves_of_mess_give_the_published_latency_and_bandwidth(system: str) -> None:
    profile = import_profile([DATA / "mess" / f"{system}.csv"], system)
    latency_ns, peak = PUBLISHED[system]
    assert profile.scalar("read_latency_ns") == pytest.approx(latency_ns, rel=0.01)
    by_share = profile.curve("bandwidth_by_read_share_bytes_per_s")
    assert max(rate for _, rate in by_share) == pytest.approx(peak * GB, rel=0.01)
    assert profile.scalar("read_bandwidth_bytes_per_s") == max(by_share)[1]
    loaded = profile.curve("read_latency_by_load_ns", read_share=max(by_share)[0])
    assert loaded == sorted(loaded)
    assert profile.source_of("read_latency_ns") == f"Mess, imported from {system}.csv"


def test_latencies_of_mlc_under_load_end_in_the_bandwidth_that_it_printed() -> None:
    profile = import_profile([DATA / "mlc_4110.txt"], "xeon-4110")
    assert profile.scalar("read_latency_ns") == pytest.approx(81.96)
    assert profile.scalar("read_bandwidth_bytes_per_s") == pytest.approx(135655.9e6)
    loaded = profile.curve("read_latency_by_load_ns", read_share=1)
    assert loaded[0] == pytest.approx((1237.6e6, 81.96))
    assert "not saturated" not in (profile.figure("read_latency_by_load_ns").note or "")
    assert profile.source_of("read_latency_ns").startswith("Intel Memory Latency Checker 3.5,")


def test_a_profile_of_mlc_is_simulated(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    """MLC measures no write without a read: the 1:1 mix stands for writes."""
    file = tmp_path / "mlc.toml"
    output = str(DATA / "mlc_two_sockets.txt")
    done = run_nearfar("profile", "import", output, "--nodes", "0:0", "--out", str(file))
    assert done.code == 0
    (loaded,) = sim_memories.load([str(file)], silent)
    assert loaded.scalar("write_latency_ns") == loaded.scalar("read_latency_ns")
    assert loaded.scalar("write_bandwidth_bytes_per_s") == 143355.4e6
    assert "50% of them reads" in str(loaded.figure("write_bandwidth_bytes_per_s").note)
    done = run_nearfar("sim", "--pattern", "random", "--far", str(file), "--requests", "1000")
    assert done.code == 0, done.stderr


@pytest.mark.parametrize(
    ("file", "idle_ns", "peaks"),
    [
        ("mlc_two_sockets", 82.1, (158844.5, 150658.6, 149341.2, 143355.4)),
        ("mlc_four_nodes", 76.09, (232777.7, 216680.7, 213856.4, 197430.7)),
    ],
)
def test_outputs_of_mlc_give_the_printed_latency_and_peaks(
    file: str, idle_ns: float, peaks: tuple[float, ...]
) -> None:
    profile = import_profile([DATA / f"{file}.txt"], "mlc", nodes=(0, 0))
    assert profile.scalar("read_latency_ns") == pytest.approx(idle_ns, rel=0.01)
    assert profile.scalar("read_bandwidth_bytes_per_s") == pytest.approx(peaks[0] * 1e6, rel=0.01)
    by_share = dict(profile.curve("bandwidth_by_read_share_bytes_per_s"))
    printed = dict(zip((1.0, 0.75, 2 / 3, 0.5), peaks, strict=True))
    for share, peak in printed.items():
        nearest = min(by_share, key=lambda known: abs(known - share))
        assert by_share[nearest] == pytest.approx(peak * 1e6, rel=0.01)


@pytest.mark.parametrize(("nodes", "rate"), [((0, 0), 90935.7), ((0, 1), 34457.4)])
def test_bandwidths_of_mlc_are_those_between_two_nodes(nodes: tuple[int, int], rate: float) -> None:
    profile = import_profile([DATA / "mlc_two_nodes.txt"], "node", nodes=nodes)
    assert profile.scalar("read_bandwidth_bytes_per_s") == pytest.approx(rate * 1e6)
    assert set(profile.figures) == {"read_bandwidth_bytes_per_s"}  # others are of both nodes
    assert "Left out: peak bandwidths by mix, which mlc prints for all nodes" in profile.description


def test_one_of_several_nodes_must_be_chosen(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    """Local memory, which would be the first pair, is seldom what is imported."""
    file = str(DATA / "mlc_two_nodes.txt")
    done = run_nearfar("profile", "import", file, "--out", str(tmp_path / "p.toml"))
    done.assert_refused(2, "as CPUs:memory 0:0, 0:1, 1:0, 1:1")
    assert "--nodes 0:1" in done.stderr
    assert not (tmp_path / "p.toml").exists()
    quiet = run_nearfar("profile", "import", file, "--nodes", "0:1", "--name", "far", "--quiet")
    assert (quiet.code, quiet.stderr) == (0, "")


def test_peaks_of_a_machine_of_one_node_are_bandwidths_by_mix(tmp_path: Path) -> None:
    text = (DATA / "mlc_two_nodes.txt").read_text()
    file = tmp_path / "peaks.txt"
    file.write_text(text[text.index("Measuring Peak") :])
    curve = import_profile([file], "one").curve("bandwidth_by_read_share_bytes_per_s")
    assert curve[0] == pytest.approx((0.5, 174143.7e6))
    assert curve[-1] == pytest.approx((1.0, 181223.5e6))


def test_several_files_make_one_profile(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    (tmp_path / "stream.txt").write_text(STREAM)
    mlc = str(DATA / "mlc_4110.txt")
    done = run_nearfar("profile", "import", mlc, "stream.txt", "--name", "both", "--json", "p.json")
    assert done.code == 0, done.stderr
    assert "profile: both.toml" in done.stderr
    profile = load_profile(tmp_path / "both.toml")
    assert profile.scalar("triad_bandwidth_bytes_per_s") == 85.1 * GB
    assert profile.figure("copy_bandwidth_bytes_per_s").note == "8 threads; as STREAM counts bytes"
    assert profile.scalar("read_latency_ns") == pytest.approx(81.96)
    assert "Intel Memory Latency Checker and STREAM" in profile.title
    again = run_nearfar("profile", "import", mlc, "--name", "both")
    assert (again.code, "both.toml exists" in again.stderr) == (2, True)


def test_a_curve_without_more_latency_at_its_end_is_not_saturated(tmp_path: Path) -> None:
    growing = [Loaded(bandwidth * GB, 100 + bandwidth) for bandwidth in (0, 10, 20, 40)]
    assert not saturates(growing)
    assert saturates([*growing, Loaded(41 * GB, 160)])
    rows = "read_pct_rounded,bandwidth_mean,latency_mean\n100,1,90\n100,40,110\n"
    (tmp_path / "open.csv").write_text(rows)
    profile = import_profile([tmp_path / "open.csv"], "open")
    assert profile.figure("read_latency_by_load_ns").note == "not saturated at 100% reads"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not an output of Mess, Intel MLC or STREAM"),
        ("Copy: much\n", "has no rate of Scale and Add and Triad"),
        (MESS, "has no curve"),
        (MESS + "100,x,90\n", "line 2: 'x' is not a bandwidth in GB/s"),
        (MESS + "100,nan,90\n", "line 2: 'nan' is not a bandwidth"),
        (MESS + "100,5,1e308\n", "line 2: '1e308' is not a latency in ns"),
        (MESS + "100,0.0000000001,90\n", "line 2: no memory has a bandwidth of 0.0000000001 GB/s"),
        (MESS + "130,5,90\n", "line 2: no memory has a fraction of reads of 130 %"),
        (MESS + "100,5\n", "line 2: '' is not a latency in ns"),
        (MESS + "100,5,90\n100,6,9", "may be cut: its last line has no end"),
        (MESS + "100,5," + "9" * 140_000 + "\n", "line 2: field larger than field limit"),
        (MESS.replace("\n", ",latency_mean\n"), "more than once, such as latency_mean"),
        ("Measuring idle latencies (in ns)...\n", "a matrix of nodes has no rows: it may be cut"),
        (MLC.format(latency="-", rate="9.0"), "no figure for node 0 to memory of node 0"),
        (MESS + "100,225000,90\n", "no memory has a bandwidth of 225000 GB/s"),
        ("Measuring Loaded Latencies for the system\n", "no figures of Intel MLC"),
        (MLC.format(latency="81,9", rate="9.0"), "'81,9' is not a latency in ns"),
        (MLC.format(latency="81.9", rate="234,567.8"), "'234,567.8' is not a bandwidth in MB/s"),
        (MLC.format(latency="81.9", rate="0.0"), "no memory has a bandwidth of 0.0 MB/s"),
        (MLC.format(latency="1²", rate="9.0"), "'1²' is not a latency in ns"),
        (MLC.format(latency="81.9", rate="9" * 400), "is not a bandwidth in MB/s"),
        (MLC.format(latency="81.9", rate="900.0") * 2, "has several outputs of mlc"),
        (STREAM.replace("90000.5", "0.0"), "Copy: no memory has a bandwidth of 0.0 MB/s"),
        (STREAM.replace("90000.5", "90,000.5"), "Copy: '90,000.5' is not a bandwidth in MB/s"),
        (STREAM.replace("90000.5", "-1"), "Copy: '-1' is not a bandwidth in MB/s"),
        (STREAM.replace("90000.5", "9.0e4"), "Copy: '9.0e4' is not a bandwidth in MB/s"),
        (STREAM * 2, "has several runs of STREAM"),
        (STREAM + "Failed Validation on array a[]\n", "computed wrong results"),
    ],
)
def test_damaged_outputs_are_refused_by_line(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "given"
    file.write_text(text)
    with pytest.raises(BadInputError, match=re.escape(why)):
        import_profile([file], "given")


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("missing.csv",), "missing.csv"),
        (("one.txt", "--nodes", "0-1"), "--nodes 0-1 is not a pair of nodes"),
        (("one.txt", "--name", "a/b"), "is not a name for a profile"),
        (("one.txt", "--from", "mess"), "has no columns read_pct_rounded"),
    ],
)
def test_wrong_flags_leave_no_file(
    run_nearfar: RunNearfar, tmp_path: Path, flags: tuple[str, ...], why: str
) -> None:
    (tmp_path / "one.txt").write_text(STREAM)
    done = run_nearfar("profile", "import", *flags)
    assert (done.code, why in " ".join(done.stderr.split())) == (2, True)
    assert [file.name for file in tmp_path.glob("*.toml")] == []
