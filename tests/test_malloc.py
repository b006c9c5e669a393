"""``nearfar bench malloc``: allocators by name, plans, and the verb end to end."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import RunNearfar
from nearfar.cli.bench.malloc import _BEFORE_ALLOCATOR, _parts
from nearfar.errors import BadInputError, MachineError
from nearfar.measure import allocators
from nearfar.measure.malloc import COUNTS, MallocPlan
from nearfar.store import read_run

CPUS = allocators.one_cpu()


def installed(name: str) -> bool:
    try:
        allocators.resolve(name)
    except MachineError:
        return False
    return True


def plan(**changes: Any) -> MallocPlan:
    glibc = allocators.Allocator("glibc", "glibc")
    fields = {
        "tests": ("small", "large"),
        "threads": (1, 2, 4, 8),
        "allocators": (glibc,),
        "cpus": (0, 1),
        "first_seed": 1,
    }
    return MallocPlan(**{**fields, **changes})


def test_a_short_plan_drops_threads_first_then_the_large_test() -> None:
    seen = []
    smaller: MallocPlan | None = plan()
    while smaller is not None:
        seen.append((smaller.tests, smaller.threads))
        smaller = smaller.smaller()
    assert seen == [
        (("small", "large"), (1, 2, 4, 8)),
        (("small", "large"), (1, 8)),
        (("small", "large"), (1,)),
        (("small",), (1,)),
    ]


def test_tests_that_do_not_fit_in_memory_are_refused() -> None:
    plan(count=1000).check_room()
    with pytest.raises(MachineError, match="test small touches"):
        plan(count=10**12).check_room()


def test_counts_are_those_of_the_thesis() -> None:
    assert [COUNTS[t] for t in ("small", "large", "free-loop", "half-free-loop")] == [
        10**6,
        10**6,
        10**4,
        10**4,
    ]


def test_commas_part_allocators_but_not_their_tiers() -> None:
    given = ["glibc,hmalloc:file:/d,capacity=1GiB,hmalloc:near", "mimalloc, memkind:pmem:/d"]
    assert _parts(given, _BEFORE_ALLOCATOR) == [
        "glibc",
        "hmalloc:file:/d,capacity=1GiB",
        "hmalloc:near",
        "mimalloc",
        "memkind:pmem:/d",
    ]


@pytest.mark.parametrize("name", ["mimalloc", "jemalloc", "memkind"])
def test_peers_that_are_installed_bring_their_own_code(name: str) -> None:
    if not installed(name):
        pytest.skip(f"{name} is not installed: it was NOT compared")
    figures = allocators.run(
        allocators.resolve(name), "small", count=1000, seed=1, cpus=CPUS, settle_s=0.0
    )
    assert f"lib{name}" in figures["library"]
    assert figures["pairs"] == "1000"


def test_glibc_is_never_another_allocator_that_is_preloaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LD_PRELOAD", "libmimalloc.so.2.0")
    figures = allocators.run(
        allocators.resolve("glibc"), "small", count=10, seed=1, cpus=CPUS, settle_s=0.0
    )
    assert "libc.so" in figures["library"]


def test_a_missing_library_is_reported_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = {"jemalloc": (("libjemalloc-that-is-nowhere.so",), "libjemalloc2")}
    monkeypatch.setattr(allocators, "_LIBRARIES", missing)
    with pytest.raises(MachineError) as error:
        allocators.resolve("jemalloc")
    assert error.value.exit_code == 3
    assert error.value.next_step == "sudo apt-get install -y libjemalloc2"


def test_a_library_without_malloc_is_not_an_allocator(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no library"):
        allocators.resolve(f"preload:{tmp_path}/none.so")
    subprocess.run(["cc", "-shared", "-o", tmp_path / "x.so", "-x", "c", "/dev/null"], check=True)
    with pytest.raises(BadInputError, match="brings no malloc"):
        allocators.resolve(f"preload:{tmp_path}/x.so")


def test_an_allocator_that_dies_is_named(tmp_path: Path) -> None:
    source = tmp_path / "abort.c"
    source.write_text(
        "#include <stdlib.h>\n"
        'void *malloc(size_t n) { (void)n; if (getenv("DIE")) abort(); return 0; }\n'
        "void free(void *p) { (void)p; }\n"
    )
    library = tmp_path / "abort.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    broken = allocators.Allocator("broken", "preload", str(library))
    with pytest.raises(MachineError, match="broken"):
        allocators.run(broken, "small", count=10, seed=1, cpus=CPUS, settle_s=0.0)


def test_two_tests_end_to_end(tmp_path: Path, run_nearfar: RunNearfar) -> None:
    peer = next((name for name in ("mimalloc", "jemalloc") if installed(name)), "memkind")
    done = run_nearfar(
        "bench",
        "malloc",
        "--test",
        "half-free-loop,warm",
        "--blocks",
        "500",
        "--allocator",
        peer,
        "--threads",
        "1,3",
        "--cpus",
        str(CPUS[0]),
        "--runs",
        "6",
        "--out",
        "r",
        "--json",
        "-",
    )
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    rows = document["rows"]
    assert len(rows) == 2 * 2 * 2
    for row in rows:
        assert row["oversubscribed"] == (row["threads"] == 3)
        for key in ("cpu_time_s", "wall_time_s"):
            low, high = row["intervals"][key]
            assert 0 < low <= row[key] <= high
            assert row["provenance"][key]["origin"] == "measured"
        assert row["pairs"] == (5000 if "loop" in row["test"] else 500)
        assert ("ratio_to_glibc" in row) == (row["allocator"] == peer)
        assert ("pair_time_ns" in row) == (row["test"] == "warm")
        assert row["provenance"]["settled_memory_bytes"]["samples"] == 2
    assert (document["test"], document["allocator"], document["threads"]) == (
        "half-free-loop",
        peer,
        1,
    )
    assert 0 < document["ratio_to_glibc"] < 100
    kept = read_run(tmp_path / "r").sections.malloc
    assert kept is not None
    assert kept.cpu_time_s == document["cpu_time_s"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--test", "huge"], 2, "unknown test 'huge'"),
        (["--threads", "1,two"], 2, "invalid number of threads 'two'"),
        (["--threads", "0"], 2, "invalid number of threads '0'"),
        (["--threads", "99999"], 2, "measure the scheduler"),
        (["--allocator", "ptmalloc"], 2, "unknown allocator 'ptmalloc'"),
        (["--allocator", "memkind:nosuch"], 2, "no kind 'nosuch'"),
        (["--allocator", "memkind:pmem:/nonexistent"], 3, "no pmem kind"),
        (["--test", "large", "--blocks", "999999999999"], 3, "use a smaller --blocks"),
        (["--blocks", "0"], 2, "--blocks"),
    ],
)
def test_bad_input_is_refused_before_anything_is_measured(
    arguments: list[str], code: int, said: str, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    if any(part.startswith("memkind") for part in arguments) and not installed("memkind"):
        pytest.skip("memkind is not installed")
    done = run_nearfar("bench", "malloc", *arguments)
    done.assert_refused(code, said)
    assert not list(tmp_path.glob("nearfar-runs/*"))
