"""perf.data files as the native core reads them: recorded, or made with hardware events."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import perf_files
from nearfar import _native

RECORDED = Path(__file__).parent / "fixtures" / "perf"

#: PERF_REG_X86_*
_SP, _IP = 7, 8


def _levels(samples: _native.PerfSamples) -> list[str]:
    return [_native.PERF_MEMORY_LEVELS[level] for level in samples["level"]]


def test_a_recorded_file_has_clock_samples_with_registers_and_page_faults() -> None:
    data = _native.read_perf_data(str(RECORDED / "clock-registers.data"))
    assert data["complete"]
    assert data["lost"] == 0
    clock, faults = data["events"]
    assert (clock["name"], clock["pmu"]) == ("cpu-clock:u", "software")
    assert faults["name"] == "page-faults:u"
    # As `perf script` counts them.
    parent, child = 16178, 16180
    pids = clock["samples"]["pid"]
    assert [int(np.count_nonzero(pids == pid)) for pid in (parent, child)] == [144, 15]
    assert len(faults["samples"]["pid"]) == 14
    registers = clock["samples"]["registers"]
    assert registers.shape == (159, 24)
    assert np.array_equal(registers[:, _IP], clock["samples"]["ip"])
    assert np.all(registers[:, _SP] > 0)
    assert np.all(faults["samples"]["address"] != 0)
    assert np.all(clock["samples"]["address"] == 0)


def test_a_recorded_file_has_the_processes_and_their_mappings() -> None:
    data = _native.read_perf_data(str(RECORDED / "clock-registers.data"))
    assert [(task["parent_pid"], task["pid"]) for task in data["forks"]] == [(16178, 16180)]
    assert sorted(task["pid"] for task in data["exits"]) == [16178, 16180]
    assert (data["comms"][-1]["name"], data["comms"][-1]["exec"]) == ("chase", True)
    program = [m for m in data["mappings"] if m["file"].endswith("/chase")]
    code = next(m for m in program if m["executable"])
    ips = data["events"][0]["samples"]["ip"]
    inside = (ips >= code["address"]) & (ips < code["address"] + code["length"])
    assert np.mean(inside) > 0.9
    assert any(m["file"].endswith("/chase") and len(m["build_id"]) == 40 for m in data["build_ids"])


def test_a_compressed_file_that_was_written_to_a_pipe_is_read() -> None:
    data = _native.read_perf_data(str(RECORDED / "compressed.pipe.data"))
    (clock,) = data["events"]
    assert clock["name"] == "cpu-clock:u"
    assert len(clock["samples"]["ip"]) == 496
    assert np.all(np.diff(clock["samples"]["time_ns"][:100].astype(np.int64)) > 0)


def test_load_latency_samples_have_address_latency_and_level(tmp_path: Path) -> None:
    data = _native.read_perf_data(str(perf_files.pebs(tmp_path / "perf.data")))
    (event,) = data["events"]
    samples = event["samples"]
    assert data["cpu"] == "Synthetic Xeon"
    assert (event["name"], event["pmu"]) == ("cpu/mem-loads,ldlat=30/P", "cpu")
    assert _levels(samples) == ["l3", "local_ram", "remote_ram", "pmem"]
    assert samples["latency_cycles"].tolist() == [70, 350, 520, 900]
    assert samples["address"].tolist() == [0x7F0000001000, 0x7F0000002040, 0x7F0000003080, 0]
    assert samples["tlb_miss"].tolist() == [0, 1, 0, 0]
    assert samples["exact_ip"].tolist() == [1, 1, 1, 1]
    assert samples["period"].tolist() == [perf_files.SAMPLE_PERIOD] * 4
    assert samples["tid"].tolist() == [8] * 4
    assert samples["registers"].shape == (0, 24)


def test_ibs_registers_have_address_latency_and_level(tmp_path: Path) -> None:
    data = _native.read_perf_data(str(perf_files.ibs_raw(tmp_path / "perf.data")))
    samples = data["events"][0]["samples"]
    assert _levels(samples) == [
        "local_ram", "remote_ram", "cxl", "l1", "beyond_l1", "unknown",
    ]  # fmt: skip
    assert samples["latency_cycles"].tolist() == [400, 700, 900, 0, 0, 0]
    assert samples["address"].tolist()[:2] == [0x7F0000001000, 0x7F0000002000]
    assert samples["load"].tolist() == [1, 1, 1, 1, 0, 0]
    assert samples["store"].tolist() == [0, 0, 0, 0, 1, 0]


def test_ibs_samples_that_the_kernel_decoded_are_read(tmp_path: Path) -> None:
    data = _native.read_perf_data(str(perf_files.ibs_decoded(tmp_path / "perf.data")))
    samples = data["events"][0]["samples"]
    assert _levels(samples) == ["cxl"]
    assert samples["latency_cycles"].tolist() == [800]


@pytest.mark.parametrize("name", ["clock-registers.data", "compressed.pipe.data"])
def test_a_truncated_file_is_refused(tmp_path: Path, name: str) -> None:
    whole = (RECORDED / name).read_bytes()
    cut = tmp_path / "perf.data"
    cut.write_bytes(whole[: len(whole) // 2 + 3])
    with pytest.raises(_native.NativeError, match="truncated"):
        _native.read_perf_data(str(cut))


def test_what_is_not_perf_data_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "perf.data"
    other.write_text("not a recording")
    with pytest.raises(_native.NativeError, match="is not a perf"):
        _native.read_perf_data(str(other))
    with pytest.raises(_native.NativeError, match="is a directory"):
        _native.read_perf_data(str(tmp_path))
