"""Stores in helpers of the program, copies that a power failure tears, and calls of the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Outcome, RunNearfar
from crashing import compiled_for, document, lines_matching, needs_explorer, needs_libpmem
from test_crash_recorders import RECORDERS

pytestmark = [needs_explorer, needs_libpmem]


def line_of(name: str, mark: str) -> str:
    """FILE:LINE of the line of a program that has the mark in a comment."""
    return lines_matching(name, rf"/\* {mark} \*/")[0]


def crash(
    run: RunNearfar, verb: str, recorder: str, folder: Path, name: str, *flags: str
) -> Outcome:
    program = compiled_for(recorder, folder, name, "-D_GNU_SOURCE")
    flags = ("--recorder", recorder, "--json", "-", *flags)
    return run("crash", verb, *flags, "--", str(program), str(folder / "pool"))


def places(paths: list[str]) -> list[str]:
    return [Path(path).name for path in paths]


@pytest.mark.parametrize("recorder", RECORDERS)
def test_lint_names_the_wrong_calls_of_a_helper(
    recorder: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    done = crash(run_nearfar, "lint", recorder, tmp_path, "helpers")
    found = {each["rule"]: each for each in document(done)["findings"]}
    assert set(found) == {"unflushed", "needless_flush"}, done
    store, flush = found["unflushed"], found["needless_flush"]
    assert Path(store["place"]).name == line_of("helpers", "STORE")
    assert places(store["calls"])[1] == line_of("helpers", "WRONG")
    assert (store["times"], store["other_calls"]) == (1, [])
    blamed = [flush["place"], *flush["inlined_into"]]
    assert line_of("helpers", "FLUSH") in places(blamed)
    assert places(flush["calls"]) == [line_of("helpers", "NEEDLESS")]


@pytest.mark.parametrize("recorder", RECORDERS)
def test_run_names_the_wrong_call_of_a_helper(
    recorder: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    done = crash(run_nearfar, "run", recorder, tmp_path, "helpers")
    (finding,) = document(done)["findings"]
    assert Path(finding["store"]).name == line_of("helpers", "STORE")
    assert finding["missing"] == "flush"
    assert places(finding["store_calls"])[1] == line_of("helpers", "WRONG")


@pytest.mark.parametrize("recorder", RECORDERS)
def test_a_copy_in_place_is_found_at_once(
    recorder: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    done = crash(run_nearfar, "run", recorder, tmp_path, "page_in_place", "--budget", "50")
    found = document(done)["findings"]
    assert {Path(each["store"]).name for each in found} == {line_of("page_in_place", "TORN")}
    assert "torn" in {each["missing"] for each in found}, found
    assert (tmp_path / found[0]["image"]).stat().st_size == (tmp_path / "pool").stat().st_size


@pytest.mark.parametrize("recorder", RECORDERS)
def test_the_kernel_reads_into_the_pool(
    recorder: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    found = document(crash(run_nearfar, "lint", recorder, tmp_path, "read_into_pool"))
    assert not found["warnings"]
    stored = {Path(each["place"]).name for each in found["findings"]}
    assert stored == set(lines_matching("read_into_pool", r"/\* READ \*/"))


KERNEL_STORES = (
    *("uname", "stat", "fstat", "lstat", "getcwd", "readlink", "clock_gettime", "gettimeofday"),
    *("getrusage", "fstatfs", "pipe", "waitpid", "poll", "epoll_wait", "recvmsg", "ioctl"),
    *("wait4", "recvmmsg", "msgrcv", "sched_getaffinity", "select", "sigprocmask"),
)


@pytest.mark.parametrize("recorder", RECORDERS)
def test_what_the_kernel_stores_is_a_store_of_the_call(
    recorder: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    found = document(crash(run_nearfar, "lint", recorder, tmp_path, "calls_into_pool"))
    assert not found["warnings"]
    stored = {Path(each["place"]).name for each in found["findings"]}
    calls = rf"\b({'|'.join(KERNEL_STORES)})\("
    assert stored == set(lines_matching("calls_into_pool", calls))


def test_a_system_call_that_cannot_store_is_noted(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compiled_for("preload", tmp_path, "calls_into_pool", "-D_GNU_SOURCE")
    command = (
        "crash",
        "lint",
        "--json",
        "-",
        "--",
        str(program),
        str(tmp_path / "pool"),
        "unknown",
    )
    found = document(run_nearfar(*command))
    assert found["verdict"] == "inconclusive"
    assert any("syscall(202) failed with EFAULT" in each for each in found["warnings"])


def test_system_calls_that_the_program_makes_itself(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    found = document(crash(run_nearfar, "lint", "preload", tmp_path, "raw_calls"))
    assert not found["warnings"]
    stored = {Path(each["place"]).name for each in found["findings"]}
    assert stored == set(lines_matching("raw_calls", r"/\* STORE \*/"))


@pytest.mark.parametrize("recorder", RECORDERS)
def test_descriptors_are_closed_before_the_pool_is_mapped(
    recorder: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    (finding,) = document(crash(run_nearfar, "lint", recorder, tmp_path, "closed_range"))[
        "findings"
    ]
    assert Path(finding["place"]).name == line_of("closed_range", "STORE")


@pytest.mark.parametrize("recorder", RECORDERS)
@pytest.mark.parametrize("store", ["-DSTORE", "-DNONE"])
def test_a_clflush_needs_no_fence(
    recorder: str, store: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for(recorder, tmp_path, "clflush_alone", store)
    flags = ("--recorder", recorder, "--json", "-")
    done = run_nearfar("crash", "lint", *flags, "--", str(program), str(tmp_path / "pool"))
    assert (done.code, document(done)["verdict"]) == (0, "clean"), done


@pytest.mark.parametrize("size", [520, 4096, 5000])
def test_what_a_library_stores_over_known_stores_is_not_clean(
    size: int, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for("instrumented", tmp_path, "sorted_unseen", f"-DSIZE={size}")
    flags = ("--recorder", "instrumented", "--json", "-")
    done = run_nearfar("crash", "lint", *flags, "--", str(program), str(tmp_path / "pool"))
    found = document(done)
    assert found["verdict"] == "inconclusive"
    assert any("stored unseen" in warning for warning in found["warnings"]), found


@pytest.mark.parametrize("recorder", RECORDERS)
@pytest.mark.parametrize("verb", ["lint", "run"])
def test_errno_is_kept(verb: str, recorder: str, run_nearfar: RunNearfar, tmp_path: Path) -> None:
    found = document(crash(run_nearfar, verb, recorder, tmp_path, "errno_kept"))
    assert not any("ended with" in warning for warning in found["warnings"]), found
