"""``nearfar advise`` from samples of a native run: sites, plans, children, running processes."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import shared_memory
from conftest import RunNearfar
from nearfar._native import NativeError, Sampler
from nearfar.records.numbers import Quantity, numbers
from nearfar.sampling.run import MAX_COST, Sampled
from nearfar.store import read_run
from nearfar.workflows import sampled_run
from nearfar.workflows.host_here import HostChoice
from nearfar.workflows.observation import AdviceRequest
from small_host import write_small_host

#: Two tables of 64 MiB: one is chased in random order, the other is written once. A third, of 16
#: KiB, is read all the time and fits any cache.
PROGRAM = """#include <stdint.h>
#include <stdlib.h>
#include <string.h>
enum { LINES = 1 << 20 };
typedef struct line { struct line* next; char rest[56]; } line;
static line* chased(void) { return malloc(LINES * sizeof(line)); }
static char* written(void) { return malloc(LINES * 64); }
static int* small(void) { return calloc(4096, 4); }
int main(int count, char** arguments) {
  line* nodes = chased();
  for (uint32_t i = 0, at = 0; i < LINES; ++i) {
    uint32_t to = (at * 1664525u + 1013904223u) % LINES;
    nodes[at].next = &nodes[to];
    at = to;
  }
  char* rest = written();
  memset(rest, 1, LINES * 64);
  int* hot = small();
  long sum = rest[count];
  line* at = nodes;
  for (long i = 0; i < (count > 1 ? atol(arguments[1]) : 6000000); ++i) {
    at = at->next;
    sum += hot[i & 4095];
  }
  return sum + (long)at == 1;
}
"""


@pytest.fixture(autouse=True, scope="module")
def _permitted() -> None:
    try:
        Sampler.open(1_000_000, 16)
    except NativeError as error:
        pytest.skip(f"no samples on this machine: {error.args[1]}")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sampled")
    (folder / "chase.c").write_text(PROGRAM)
    flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-inline"]
    subprocess.run(["cc", *flags, "chase.c", "-o", "chase"], check=True, cwd=folder)
    return folder / "chase"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    file = write_small_host(tmp_path_factory.mktemp("host") / "small.toml")
    return ("--near", "ddr4", "--host", str(file))


def read(tmp_path: Path) -> Any:
    return json.loads((tmp_path / "found.json").read_text())


def test_the_chased_site_makes_the_loss_and_is_kept_near(
    run_nearfar: RunNearfar, host: tuple[str, ...], program: Path, tmp_path: Path
) -> None:
    done = run_nearfar("advise", *host, "--json", "found.json", "--", str(program))
    assert done.code == 0, done.stderr
    found = read(tmp_path)
    assert found["method"] == "sampled"
    assert found["samples"] > 500
    assert found["slowdown_all_far"] > 1.2
    first = found["sites"][0]
    assert first["at"] == "chase.c:6"
    assert first["verdict"] == "near"
    assert first["size_bytes"] == pytest.approx(64 << 20, rel=0.05)
    assert first["stall_share"] > 0.8
    assert 0.8 < first["life_share"] < 1.0
    others = [site for site in found["sites"][1:] if site["kind"] == "heap"]
    assert all(site["far_time_s"] < first["far_time_s"] / 10 for site in others)
    assert found["near_bytes"] < 80 << 20
    low, high = found["intervals"]["slowdown_all_far"]
    assert low < found["slowdown_all_far"] < high
    assert (found["observed_on"], found["observed_latency_ns"]) == ("dram", 155)  # not ddr4
    assert found["intervals"]["observed_latency_ns"] == [150, 160]
    assert found["provenance"]["near_page_walk_ns"]["origin"] == "measured"  # that of dram
    assert found["provenance"]["time_near_s"]["origin"] == "modelled"
    assert found["provenance"]["time_observed_s"]["origin"] == "measured"
    assert found["cpu_near_s"] < found["cpu_observed_s"]  # ddr4 is faster than the memory here
    plan = (tmp_path / found["plan"]).read_text()
    assert "# chase.c:6" in plan
    assert "caches=" not in plan  # reads and writes are estimates: none to compare with counts
    ran = run_nearfar("run", "--plan", found["plan"], "--tier", "far=dram", "--", str(program), "9")
    assert ran.code == 0, ran.stderr


#: A table that realloc() grows to 64 MiB, and with it moves, is read in random order.
GROWN = """#include <stdint.h>
#include <stdlib.h>
enum { WORDS = 1 << 24 };
static uint32_t* started(void) { return malloc(4096); }
static uint32_t* grown(uint32_t* old, size_t words) { return realloc(old, words * 4); }
int main(void) {
  uint32_t* table = started();
  for (size_t words = 2048; words <= WORDS; words *= 2) table = grown(table, words);
  for (uint32_t i = 0; i < WORDS; ++i) table[i] = i * 2654435761u;
  uint32_t at = 1, random = 1;
  for (int i = 0; i < 8000000; ++i) {
    random = random * 1664525u + 1013904223u;
    at = (table[at] + random) % WORDS;
  }
  return at == 1;
}
"""


def test_a_table_that_grew_is_placed_where_it_was_first_allocated(
    run_nearfar: RunNearfar, host: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "grow.c").write_text(GROWN)
    flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-inline"]
    subprocess.run(["cc", *flags, "grow.c", "-o", "grow"], check=True, cwd=tmp_path)
    done = run_nearfar("advise", *host, "--json", "found.json", "--", "./grow")
    assert done.code == 0, done.stderr
    found = read(tmp_path)
    assert not any("data address is unknown" in note for note in found["warnings"])
    first = found["sites"][0]
    assert (first["at"], first["allocations"]) == ("grow.c:4", 1)
    assert first["allocated_bytes"] == 64 << 20
    assert first["size_bytes"] == pytest.approx(64 << 20, rel=0.01)
    assert found["slowdown_all_far"] > 1.2
    tier = ("--tier", "far=dram", "--check", "--no-traffic")
    ran = run_nearfar("run", "--plan", found["plan"], *tier, "--", "./grow")
    assert ran.code == 0, ran.stdout + ran.stderr


#: Blocks and mappings that are freed, moved or unmapped before a sample of them is read.
FLEETING = """#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
enum { BYTES = 40 << 20 };
int main(void) {
  long sum = 0;
  char* grown = NULL;
  for (int i = 0; i < 20; ++i) {
    char* block = malloc(BYTES);
    memset(block, i, BYTES);
    sum += block[i];
    free(block);
    block = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(block, i, BYTES);
    sum += block[i];
    munmap(block, BYTES);
    grown = realloc(grown, (i + 1) << 21);
    memset(grown + (i << 21), i, 1 << 21);
  }
  return sum == grown[7];
}
"""


def test_memory_counts_once_however_soon_it_is_freed(
    run_nearfar: RunNearfar, host: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "fleeting.c").write_text(FLEETING)
    subprocess.run(["cc", "-O1", "-g", "fleeting.c", "-o", "fleeting"], check=True, cwd=tmp_path)
    done = run_nearfar("advise", *host, "--json", "found.json", "--", "./fleeting")
    assert done.code == 0, done.stderr
    found = read(tmp_path)
    assert found["fixed_bytes"] < 16 << 20  # of 1.6 GiB that were touched
    assert 70 << 20 < found["movable_bytes"] < 160 << 20  # of 80 MiB at a time


@pytest.mark.parametrize(("pages", "every_fault"), [("4k", False), ("thp", True)])
def test_each_page_fault_is_sampled_where_they_are_few(
    monkeypatch: pytest.MonkeyPatch, pages: str, *, every_fault: bool
) -> None:
    """Of a heap on small pages, each would be a record for 4 KiB, of which most are lost."""
    seen: list[bool] = []

    def sampled(*_: object, large_pages: bool, max_cost: float) -> SimpleNamespace:
        seen.append(large_pages)
        return SimpleNamespace(code=0)

    monkeypatch.setattr(sampled_run, "sample_program", sampled)
    monkeypatch.setattr("nearfar.measure.memory.large_pages_everywhere", lambda: False)
    near = f"dram,pages={pages}"
    wanted = AdviceRequest(("/bin/true",), None, ("cxl-asic",), near, HostChoice(), 1.0)
    sampled_run._sample_once(wanted, 1_000_000)
    assert seen == [every_fault]


@pytest.mark.parametrize(("user_s", "costs"), [(0.5, [MAX_COST, 0.0]), (5.0, [MAX_COST])])
def test_samples_of_the_run_whose_times_are_used_have_a_limited_cost(
    monkeypatch: pytest.MonkeyPatch, user_s: float, costs: list[float]
) -> None:
    """A short program runs again, for more samples."""
    seen: list[float] = []

    def once(request: AdviceRequest, period_ns: int, max_cost: float = 0.0) -> Sampled:
        seen.append(max_cost)
        sampler = cast("Sampler", None)
        return Sampled(sampler, period_ns, user_s, user_s, 0.0, 0, 0, [(request.program[0], 100)])

    monkeypatch.setattr(sampled_run, "_sample_once", once)
    wanted = AdviceRequest(("/bin/true",), None, ("cxl-asic",), "dram", HostChoice(), 10.0)
    assert sampled_run._sample(wanted).user_s == user_s
    assert seen == costs


def test_a_table_that_does_not_fit_the_budget_is_near_in_part(
    run_nearfar: RunNearfar, host: tuple[str, ...], program: Path, tmp_path: Path
) -> None:
    flags = (*host, "--near-budget", "40MiB", "--json", "found.json")
    done = run_nearfar("advise", *flags, "--", str(program))
    assert done.code == 0, done.stderr
    found = read(tmp_path)
    assert (found["sites"][0]["verdict"], found["sites"][0]["near_share"]) == ("interleaved", 5 / 8)
    assert found["near_bytes"] == pytest.approx(40 << 20, rel=0.01)  # touched, not reserved
    fractions = found["fractions"]
    assert fractions["applied"]
    assert fractions["slowdown"] == found["slowdown_plan"] < fractions["whole_sites_slowdown"]
    whole = run_nearfar("advise", *flags, "--whole-sites", "--", str(program))
    assert whole.code == 0, whole.stderr
    assert read(tmp_path)["sites"][0]["verdict"] == "far"
    assert "fractions" not in read(tmp_path)
    tiers = ("--tier", "far=dram", "--tier", "near5far3=dram")
    ran = run_nearfar("run", "--plan", found["plan"], *tiers, "--", str(program), "9")
    assert ran.code == 0, ran.stderr


def test_programs_that_it_starts_are_included_by_name(
    run_nearfar: RunNearfar, host: tuple[str, ...], program: Path, tmp_path: Path
) -> None:
    command = ("sh", "-c", f"awk 'BEGIN{{for(i=0;i<2000000;i++)s+=i}}'; {program} 3000000; :")
    done = run_nearfar("advise", *host, "--json", "found.json", "--", *command)
    assert done.code == 0, done.stderr
    found = read(tmp_path)
    shares = {each["path"]: each["cpu_share"] for each in found["programs"]}
    assert shares["chase"] > 0.2
    assert max(shares.get("awk", 0), shares.get("mawk", 0), shares.get("gawk", 0)) > 0.02
    assert "chase.c:6" in [site["at"] for site in found["sites"]]
    assert any("programs were sampled as one" in note for note in found["warnings"])


@pytest.fixture
def running(program: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([program, "1000000000000"])
    time.sleep(0.5)
    yield process
    process.kill()
    process.wait()


def test_a_running_process_is_sampled_and_goes_on(
    run_nearfar: RunNearfar,
    host: tuple[str, ...],
    running: subprocess.Popen[bytes],
    tmp_path: Path,
) -> None:
    pid = str(running.pid)
    done = run_nearfar("advise", *host, "--pid", pid, "--time", "2s", "--json", "found.json")
    assert done.code == 0, done.stderr
    record = read_run(tmp_path / read(tmp_path)["record"])
    figures = [n for n in numbers(record.sections) if isinstance(n, Quantity)]
    assert [n.key for n in figures if n.provenance is None] == []
    assert running.poll() is None
    found = read(tmp_path)
    assert found["pid"] == running.pid
    plan = (tmp_path / found["plan"]).read_text()
    assert "rule near map=" in plan
    assert "rule near\n" not in plan  # its blocks are not known
    near = [site for site in found["sites"] if site["verdict"] == "near"]
    assert sum(site["size_bytes"] for site in near) == pytest.approx(64 << 20, rel=0.3)
    assert found["slowdown_all_far"] > 1.2
    assert any("no allocation sites" in note for note in found["warnings"])
    assert f"nearfar place --pid {pid} --plan" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "name one of: a program after --, a running process with --pid, a file"),
        (("--pid", "1", "--", "true"), "name one of: a program after --"),
        (("--pid", "4194304"), "no process 4194304"),
        (("--pid", "1", "--emulate"), "a running process cannot be emulated"),
        (("--", "false"), "false exited with 1, without standard input"),
        (("--", "true"), "too little to sample"),
        (("--", "no-such-program"), "no program no-such-program"),
    ],
)
def test_what_cannot_be_sampled_is_refused_with_a_next_step(
    run_nearfar: RunNearfar, host: tuple[str, ...], arguments: tuple[str, ...], why: str
) -> None:
    done = run_nearfar("advise", *host, *arguments)
    assert done.code == 2, done.stderr
    assert why in done.stderr
    assert "next" in done.stderr


def test_what_the_program_prints_is_discarded(
    run_nearfar: RunNearfar, host: tuple[str, ...], program: Path
) -> None:
    command = ("sh", "-c", f"echo printed; echo printed >&2; {program} 3000000")
    done = run_nearfar("advise", *host, "--json", "-", "--", *command)
    assert done.code == 0, done.stderr
    assert "\nprinted" not in f"\n{done.stdout}" + f"\n{done.stderr}"


def test_nothing_of_the_sampler_is_left_in_the_environment_or_on_disk(
    run_nearfar: RunNearfar, host: tuple[str, ...], program: Path, tmp_path: Path
) -> None:
    before = shared_memory.files()
    done = run_nearfar("advise", *host, "--out", "here", "--", str(program), "2000000")
    assert done.code == 0, done.stderr
    assert shared_memory.left_behind(before) == set()
    names = {file.name for file in (tmp_path / "here").iterdir()}
    assert names == {"run.json", "report.html", "chase.plan"}
