"""Scripts of ``nearfar advise --emit`` for other tools."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import running
from conftest import RunNearfar, without_output_settings
from nearfar.errors import BadInputError, MachineError
from nearfar.profiles import load_profile
from nearfar.records.advice import LOWER_BOUND, AdviceResult
from nearfar.records.choices import PlacementTool
from nearfar.records.depth import LoadedTier
from nearfar.records.figures import Origin, Provenance
from nearfar.report.other_tools import require_tool, script_of
from nearfar.report.other_tools.weighted_interleave import weights
from nearfar.store import read_run
from small_host import write_small_host

PROGRAM = """#include <stdint.h>
#include <stdlib.h>
int main(void) {
  uint64_t lines = 1 << 19, next = 0;
  uint64_t* table = malloc(lines * 64);
  for (uint64_t i = 0; i < lines; ++i) table[8 * i] = (i * 167 + 12345) % lines;
  for (int i = 0; i < 4000000; ++i) next = table[8 * next];
  return next == lines;
}
"""

CXL_PEAK = load_profile("cxl-asic").scalar("read_bandwidth_bytes_per_s")
FULL = LoadedTier(
    name="cxl-asic",
    read_share=1,
    bandwidth_bytes_per_s=CXL_PEAK,
    background_bytes_per_s=0,
    idle_latency_ns=250,
    latency_ns=500,
    utilization=1,
    at_open_end=False,
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a program's folder")
    (folder / "walk.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-O1", "-o", "walk", "walk.c"], cwd=folder, check=True)
    return folder / "walk"


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory, program: Path) -> AdviceResult:
    folder = tmp_path_factory.mktemp("advised")
    write_small_host(folder / "host.toml")
    arguments = ("advise", "--host", "host.toml", "--out", "run", "--", str(program))
    code, _, stderr = running.run(arguments, without_output_settings(), folder, timeout=600)
    assert code == 0, stderr
    advice = read_run(folder / "run").sections.advice
    assert advice is not None
    return advice


@pytest.fixture
def result(advised: AdviceResult) -> AdviceResult:
    """A copy, which the test may change."""
    return advised.model_copy(deep=True)


def test_each_script_is_one_for_a_shell(result: AdviceResult, program: Path) -> None:
    result.near_peak_bytes_per_s = 37.8e9
    for tool in get_args(PlacementTool):
        text = script_of(tool)(result).plain
        subprocess.run(["sh", "-n"], input=text, text=True, check=True)
        assert "near_node=0 far_node=1" in text
        assert f"{result.slowdown_all_far:.2f} x" in text
        if tool in ("numactl", "weighted-interleave"):
            assert text.endswith(f"-- {shlex.quote(str(program))}")
    assert "walk.c:5" in script_of("memkind")(result).plain


def test_numactl_puts_all_data_far_only_if_that_costs_little(result: AdviceResult) -> None:
    for slowdown, wanted in ((1.02, '--membind="$far_node"'), (1.4, '--preferred="$near_node"')):
        result.slowdown_all_far = slowdown
        assert wanted in script_of("numactl")(result).plain


def test_a_process_that_was_running_is_started_again(result: AdviceResult) -> None:
    result.pid, result.program = 77, ["process 77"]
    result.near_peak_bytes_per_s, result.far_peak_bytes_per_s = 300e9, 60e9
    for tool in ("numactl", "weighted-interleave"):
        text = script_of(tool)(result).plain
        subprocess.run(["sh", "-n"], input=text, text=True, check=True)
        assert text.endswith("-- COMMAND")
        assert "stop process 77" in " ".join(text.replace("\n# ", " ").split())


def test_nodes_of_tiers_are_used(result: AdviceResult) -> None:
    result.near, result.far, result.pid = "numa:2", "numa:5", 77
    text = script_of("damo")(result).plain
    assert "near_node=2 far_node=5" in text
    assert "assumed" not in text
    assert "pid=77" in text


def test_what_a_tool_cannot_place_is_refused(result: AdviceResult, run_nearfar: RunNearfar) -> None:
    require_tool("damo", has_program=False)
    require_tool("numactl", has_program=False, is_running=True)
    for tool in ("numactl", "weighted-interleave", "memkind"):
        with pytest.raises(BadInputError, match=f"{tool} cannot place a file of samples"):
            require_tool(tool, has_program=False)
    result.sites = []
    with pytest.raises(BadInputError):
        script_of("memkind")(result)
    done = run_nearfar("advise", "--pid", "1", "--emit", "memkind")
    assert done.code == 2
    assert "memkind cannot place a running process" in done.stderr


def test_weights_are_those_of_all_threads_if_both_are_known(result: AdviceResult) -> None:
    result.near_peak_bytes_per_s, result.far_peak_bytes_per_s = 300e9, 60e9
    text = " ".join(script_of("weighted-interleave")(result).plain.replace("#", "").split())
    assert "Bandwidth of all threads: 300 GB/s near, 60 GB/s far: weights 5 and 1" in text
    assert "echo 5 > /" in text
    assert "by latency alone" in text
    note = f"{LOWER_BOUND}: the load did not saturate it"
    known = Provenance(origin=Origin.MEASURED, statistic="fit", samples=0, note=note)
    result.provenance["near_peak_bytes_per_s"] = known
    result.all_far_load = FULL
    text = " ".join(script_of("weighted-interleave")(result).plain.replace("#", "").split())
    assert "Bandwidth of all threads (of near memory a lower bound): 300 GB/s" in text
    assert "by latency alone" not in text


def test_weights_are_not_those_of_one_thread(result: AdviceResult) -> None:
    """A core limits one thread alike on both memories."""
    result.near, result.far, result.far_peak_bytes_per_s = "dram", "cxl-asic", CXL_PEAK
    result.near_bandwidth_bytes_per_s = result.far_bandwidth_bytes_per_s = 15.7e9
    result.near_peak_bytes_per_s = None
    result.limits = ["dram is not known under load: other programs ran"]
    with pytest.raises(MachineError, match=r"not known of dram.*other programs ran"):
        script_of("weighted-interleave")(result)
    result.near_peak_bytes_per_s, result.far_peak_bytes_per_s = 37.8e9, None
    with pytest.raises(BadInputError, match="not known of cxl-asic"):
        script_of("weighted-interleave")(result)


def test_memkind_names_what_it_cannot_place(result: AdviceResult) -> None:
    assert "not in the list" not in script_of("memkind")(result).plain
    site = next(site for site in result.sites if "walk.c:5" in site.at)
    site.verdict, site.near_share = "near", None
    arenas = site.model_copy(
        update={"kind": "mapping", "at": "arenas", "size_bytes": 15 << 20, "stall_share": 0.51}
    )
    empty = site.model_copy(update={"at": "empty.c:1", "size_bytes": 0, "functions": []})
    result.sites = [site, arenas, empty]
    text = " ".join(script_of("memkind")(result).plain.replace("#", "").split())
    assert "mappings and globals, 15 MiB near and 0 B far, with 51% of the stall time" in text
    assert "walk.c:5" in text
    assert "empty.c" not in text


def test_memkind_says_where_its_equal_parts_are_not_those_of_the_advice(
    result: AdviceResult,
) -> None:
    site = next(site for site in result.sites if "walk.c:5" in site.at)
    site.verdict, site.near_share = "near", None
    assert "equal parts" not in script_of("memkind")(result).plain
    site.verdict, site.near_share = "interleaved", 0.625
    text = script_of("memkind")(result).plain
    assert "MEMKIND_INTERLEAVE has equal parts" in text
    assert "(62.5% near in the advice)" in text


def test_tiers_are_measured_with_all_threads_for_weights(
    run_nearfar: RunNearfar, tmp_path: Path, program: Path
) -> None:
    write_small_host(tmp_path / "host.toml")
    done = run_nearfar(
        *("advise", "--host", "host.toml", "--emit", "weighted-interleave", "--out", "run"),
        *("--", str(program)),
    )
    assert "measuring dram of this machine under load" in done.stderr
    advice = read_run(tmp_path / "run").sections.advice
    assert advice is not None
    if advice.near_peak_bytes_per_s is None:  # other programs used the memory, and it says so
        assert any("dram is not known under load" in limit for limit in advice.limits)
        assert done.code == 3
        assert "not known of dram" in done.stderr
    else:
        assert done.code == 0, done.stderr
        assert "Bandwidth of all threads" in done.stdout
        assert advice.provenance["near_peak_bytes_per_s"].origin is Origin.MEASURED
    assert advice.far_peak_bytes_per_s == advice.fars[0].far_peak_bytes_per_s == CXL_PEAK


def test_only_the_script_is_on_stdout(
    run_nearfar: RunNearfar, tmp_path: Path, program: Path
) -> None:
    write_small_host(tmp_path / "host.toml")
    done = run_nearfar(
        "advise", "--host", "host.toml", "--emit", "numactl", "--far", "numa:0", "--", str(program)
    )
    assert done.code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert all(line.startswith(("#", "near_node=0 far_node=0", "numactl ")) for line in lines)


@given(st.floats(1e9, 1e12), st.floats(1e9, 1e12))
@example(130295150450.0, 719229230470.0)
def test_weights_are_close_to_the_ratio_of_bandwidths(near: float, far: float) -> None:
    ours = weights(near, far)
    assert min(ours) >= 1
    # 1:5 and 1:6 are neighbors, 1/11 from the ratio in their middle
    assert ours[0] / ours[1] == pytest.approx(min(max(near / far, 1 / 255), 255), rel=0.1)
    assert weights(far, near) == ours[::-1]
