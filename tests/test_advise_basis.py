"""Inputs of ``nearfar advise``: the stored host, its ranges, and standard input."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import stored_host
from conftest import RunNearfar
from fixed_inputs import program_takes
from nearfar.place.costing import Coster
from nearfar.place.memory_costs import Core, Memory, PageWalk
from nearfar.place.uncertainty import LossFactors, _variants
from nearfar.process.stdin import of_this_process
from nearfar.profiles import load_host
from nearfar.tracing.caches import Level, caches_of
from nearfar.workflows.advising import _unused_latency
from nearfar.workflows.host_here import HostChoice
from nearfar.workflows.observation import AdviceRequest
from tracing import needs_emulator

ROOT = Path(__file__).parent.parent

WALK = """#include <stdio.h>
#include <stdlib.h>
int main(void) {
  size_t n = 3 << 20, sum = 0, lines = 0;
  long *p = malloc(n * sizeof *p);
  for (size_t i = 0; i < n; ++i) p[i] = i;
  for (int c; (c = getchar()) != EOF;) lines += c == 10;
  for (size_t i = 0, at = 1; i < 300000; ++i) sum += p[at = (at * 2654435761u + 7) % n];
  printf("%zu\\n", sum);
  return lines ? 0 : 3;
}
"""


def advice(
    run_nearfar: RunNearfar, *more: str, program: tuple[str, ...], code: int = 0
) -> dict[str, Any]:
    done = run_nearfar(
        "advise", "--emulate", *more, "--json", "-", "--", *program, prepare=program_takes(0.05)
    )
    assert done.code == code, done.stderr
    return dict(json.loads(done.stdout)) if not code else {"stderr": done.stderr}


@needs_emulator
def test_an_answer_stands_on_the_stored_host(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    (tmp_path / "walk.c").write_text(WALK.replace("return lines ? 0 : 3", "return 0"))
    subprocess.run(["cc", "-g", "-O1", "-o", "walk", "walk.c"], check=True, cwd=tmp_path)
    far = "dram,pages=thp"
    found = advice(run_nearfar, "--far", "cxl-asic", "--far", far, program=("./walk",))
    assert found["near_latency_ns"] == 155
    assert found["near_bandwidth_bytes_per_s"] == 35e9
    assert found["near_page_bytes"] == 4096
    assert found["last_cache_bytes"] == stored_host.LAST_CACHE[1]
    assert found["intervals"]["near_latency_ns"] == [150, 160]
    low, _, high = stored_host.LAST_CACHE
    assert found["intervals"]["last_cache_bytes"] == [low, high]
    assert found["provenance"]["last_cache_bytes"]["origin"] == "measured"
    assert found["provenance"]["far_latency_ns"]["origin"] == "claimed"
    assert found["host_epochs"] == 8
    assert found["provisional"] is False
    here = found["fars"][1]
    assert (here["far_latency_ns"], here["far_page_bytes"]) == (155, 2 << 20)
    assert here["slowdown_all_far"] < found["slowdown_all_far"]
    width = {}
    for llc in ("measured", "12MiB", "none"):
        more = () if llc == "measured" else ("--llc", llc)
        given = advice(run_nearfar, *more, program=("./walk",))
        low, high = given["intervals"]["slowdown_all_far"]
        width[llc] = high - low
        assert low < given["slowdown_all_far"] < high
        if llc == "measured":  # again, and the same
            assert given["last_cache_bytes"] == found["last_cache_bytes"]
        else:
            assert given["provenance"]["last_cache_bytes"]["note"] == "given: --llc"
            assert "last_cache_bytes" not in given["intervals"]
    assert width["measured"] > width["12MiB"]
    assert given["last_cache_bytes"] == 0


@needs_emulator
@pytest.mark.parametrize("given", ["file", "pipe", "nothing"])
def test_a_file_that_is_standard_input_is_passed_on(given: str, tmp_path: Path) -> None:
    (tmp_path / "walk.c").write_text(WALK)
    subprocess.run(["cc", "-O1", "-o", "walk", "walk.c"], check=True, cwd=tmp_path)
    (tmp_path / "lines").write_text("a\nb\n")
    command = [
        str(ROOT / "nearfar"),
        "advise",
        "--emulate",
        "-q",
        "--near",
        "ddr4",
        "--llc",
        "8MiB",
    ]
    end, other = os.pipe()
    with (tmp_path / "lines").open() as file, Path(os.devnull).open() as nothing:
        streams = {"file": file.fileno(), "pipe": end, "nothing": nothing.fileno()}
        done = subprocess.run(
            [*command, "--", "./walk"],
            stdin=streams[given],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
    os.close(end)
    os.close(other)
    if given == "file":
        assert done.returncode == 0, done.stderr
        assert f"standard input: {tmp_path / 'lines'}" in done.stdout.replace("\n", "")
    else:
        assert done.returncode == 2
        assert "exited with 3, without standard input" in done.stderr


def test_a_pipe_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    end, other = os.pipe()
    before = os.dup(0)
    try:
        os.dup2(end, 0)
        assert of_this_process().path == os.devnull
        assert "a pipe, which is not passed on" in of_this_process().words
    finally:
        os.dup2(before, 0)
        for each in (end, other, before):
            os.close(each)


def test_the_ends_of_a_measured_last_cache_are_modeled_too() -> None:
    low, _, high = (int(size) for size in stored_host.LAST_CACHE)
    caches = caches_of(load_host("this"), {})
    assert caches.llc is not None
    assert caches.ends == (Level(low, caches.llc.ways), Level(high, caches.llc.ways))
    assert caches_of(load_host("this"), {"llc": "8MiB"}).ends == ()
    assert caches_of(load_host("xeon-5218r"), {}).ends == ()


def test_a_loss_is_scaled_and_a_gain_is_not() -> None:
    assert LossFactors().interval([1.2, 1.1, 1.4]) == pytest.approx((1.1, 1.4))
    factors = LossFactors.of([0.5, 1.5])
    assert factors.interval([1.2, 1.1, 1.4]) == pytest.approx((1.05, 1.6))
    assert factors.interval([0.9, 1.2]) == pytest.approx((0.9, 1.3))
    both = factors.times(LossFactors.of([1.2]))
    assert (both.least, both.most) == pytest.approx((0.5, 1.8))
    assert LossFactors.of([]) == LossFactors()


class FixedWork(Coster):
    """A Coster without a trace, whose works are given."""

    def __init__(self, near: Memory) -> None:
        super().__init__(None, near, Core(448, 12))  # type: ignore[arg-type]
        self.near_works = [(near.low, self.work), (near.high, self.work)]


def walk(ns: float) -> PageWalk:
    """A page walk that takes half as long among others."""
    return PageWalk(ns, ns / 2)


def test_figures_of_one_measurement_vary_together() -> None:
    near = Memory("near", 155, 150, 160, 2, 2, walk(10), 12, 500, 450, 600, (walk(8), walk(12)))
    same = Memory("far", 155, 150, 160, 2, 2, walk(10), 12, 500, 450, 600, (walk(8), walk(12)))
    found = list(_variants(FixedWork(near), same))
    assert {(v.near_ns, v.far_ns) for v in found if v.near_ns} == {(150, 150), (160, 160)}
    assert {v.walks for v in found} - {(None, None)} == {(walk(8), walk(8)), (walk(12), walk(12))}
    other = Memory("far", 250, 225, 275, 4, 4, walk(0), 21, 9e4, 8e4, 1e5, (walk(0), walk(0)))
    found = list(_variants(FixedWork(near), other))
    assert {(v.near_ns, v.far_ns) for v in found if v.near_ns} == {(150, 275), (160, 225)}
    assert {v.walks for v in found} - {(None, None)} == {(walk(8), walk(0)), (walk(12), walk(0))}


def test_a_host_whose_near_latency_is_not_used_is_named() -> None:
    def said(host: str, near: str) -> list[str]:
        wanted = AdviceRequest(("true",), None, ("cxl-asic",), near, HostChoice(host), 1.0)
        return _unused_latency(wanted)

    (text,) = said("xeon-5218r", "dram")
    assert text.startswith("the near_read_latency_ns of host xeon-5218r, 101, is not used")
    assert "near memory is dram of this machine" in text
    assert "--near PROFILE" in text
    assert said("xeon-5218r", "ddr4") == said("this", "dram") == []
