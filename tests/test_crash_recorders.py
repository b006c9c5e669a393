"""The recorders of ``nearfar crash run``: a recorded program does what it does unrecorded."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import RunNearfar
from crashing import (
    PROGRAMS,
    compiled_for,
    crash_run,
    document,
    judged,
    lines_matching,
    needs_libpmem,
    needs_libpmemobj,
)
from nearfar.verify.findings import BlamedLine, Exploration, Finding
from nearfar.verify.recorder import compile_flags, link_flags, record

pytestmark = needs_libpmem

RECORDERS = ("preload", "instrumented")


@pytest.mark.parametrize("recorder", RECORDERS)
def test_overlapping_moves_give_the_bytes_of_the_plain_run(recorder: str, tmp_path: Path) -> None:
    program = compiled_for(recorder, tmp_path, "moves", "-fno-builtin")
    plain, recorded = tmp_path / "plain", tmp_path / "recorded"
    subprocess.run([program, plain], check=True)
    assert record([str(program), str(recorded)], tmp_path / "log", recorder) == 0
    assert recorded.read_bytes() == plain.read_bytes()


@pytest.mark.parametrize("recorder", RECORDERS)
def test_a_program_may_close_descriptors_that_it_did_not_open(
    recorder: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for(recorder, tmp_path, "pool_descriptors")
    flags = ("--checker", "true", "--budget", "10", "--json", "-", "--recorder", recorder)
    pool = str(tmp_path / "pool")
    done = run_nearfar("crash", "run", *flags, "--", str(program), pool, str(tmp_path))
    found = document(done)
    assert found["stores"] == 4096


@pytest.mark.parametrize("recorder", RECORDERS)
def test_a_signal_handler_may_store_to_the_pool(recorder: str, tmp_path: Path) -> None:
    program = compiled_for(recorder, tmp_path, "signals")
    pool = tmp_path / "pool"
    assert record([str(program), str(pool)], tmp_path / "log", recorder) == 0
    assert int.from_bytes(pool.read_bytes()[64:72], "little") == 300


@pytest.mark.parametrize("recorder", RECORDERS)
def test_a_pool_that_cannot_be_mapped_again_ends_the_recording_not_the_program(
    recorder: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for(recorder, tmp_path, "mapped_twice")
    done = crash_run(run_nearfar, program, "true", "--recorder", recorder)
    assert "recording ends: the pool cannot be mapped a second time" in done.stderr
    assert done.code == 3, done
    assert document(done)["verdict"] == "inconclusive"


def lines_with(name: str, mark: str) -> set[str]:
    """FILE:LINE of each line of a program that ends with a mark."""
    return set(lines_matching(name, f"{re.escape(mark)}$"))


@pytest.mark.parametrize("way", ["mutex", "semaphore", "barrier", "pipe", "end", "race"])
@pytest.mark.parametrize("recorder", RECORDERS)
def test_a_store_that_another_thread_persists(
    recorder: str, way: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for(recorder, tmp_path, "handed_over")
    found = judged(run_nearfar, "lint", recorder, program, way, "persist")
    assert (found["verdict"], found["findings"], found["warnings"]) == ("clean", [], [])
    found = judged(run_nearfar, "run", recorder, program, way)
    (finding,) = found["findings"]
    assert finding["missing"] == "flush"
    assert {Path(finding["store"]).name} == lines_with("handed_over", "// HANDED")


WAYS = (
    *("pwrite", "write", "pwritev", "sendfile", "syncfs"),
    *("read-only", "mprotect", "munmap", "head", "tail"),
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("recorder", RECORDERS)
def test_stores_and_flushes_by_other_ways(
    recorder: str, way: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for(recorder, tmp_path, "pool_file")
    found = judged(run_nearfar, "run", recorder, program, way, "persist")
    assert (found["verdict"], found["warnings"]) == ("clean", [])
    (finding,) = judged(run_nearfar, "lint", recorder, program, way)["findings"]
    assert finding["rule"] == "unflushed"
    if way != "sendfile":
        assert Path(finding["place"]).name in lines_with("pool_file", "// STORED")


def test_zeros_that_fallocate_makes(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compiled_for("preload", tmp_path, "pool_file")
    found = judged(run_nearfar, "run", "preload", program, "fallocate", "persist")
    assert (found["verdict"], found["warnings"]) == ("clean", [])
    (finding,) = judged(run_nearfar, "lint", "preload", program, "fallocate")["findings"]
    assert Path(finding["place"]).name in lines_with("pool_file", "// STORED")
    program = compiled_for("instrumented", tmp_path, "pool_file")
    found = judged(run_nearfar, "lint", "instrumented", program, "fallocate")
    assert (found["verdict"], found["findings"]) == ("inconclusive", [])


@pytest.mark.parametrize("recorder", RECORDERS)
def test_a_second_process_that_maps_the_pool_makes_the_result_inconclusive(
    recorder: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for(recorder, tmp_path, "pool_file")
    for verb in ("lint", "run"):
        found = judged(run_nearfar, verb, recorder, program, "spawn", "persist")
        errors = [f for f in found["findings"] if f.get("level") != "note"]
        assert (found["verdict"], errors) == ("inconclusive", [])
        assert (
            "a second process maps the pool for writing: its stores are not judged"
            in found["warnings"]
        )


@needs_libpmemobj
@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("recorder", RECORDERS)
def test_a_pool_of_libpmemobj(
    recorder: str, is_new: bool, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for(recorder, tmp_path, "counted_list")
    pool = tmp_path / "pool"
    flags = ("--recorder", recorder, "--budget", "30", "--json", "-", "--")
    if not is_new:
        subprocess.run([program, pool], check=True)
    found = document(run_nearfar("crash", "run", *flags, str(program), str(pool)))
    # Without --budget the verdict is clean: each store needs two images or more.
    assert (found["violations"], found["warnings"]) == (0, [])
    assert found["reopening"] == {"inspected": True, "started": True, "expected": []}
    linted = ("--recorder", recorder, "--json", "-", "--", str(program), str(pool), "unlogged")
    found = document(run_nearfar("crash", "lint", *linted))
    assert [f["rule"] for f in found["findings"]] == ["unlogged"]


@pytest.mark.parametrize("way", ["dprintf", "fwrite", "plain"])
@pytest.mark.parametrize("recorder", RECORDERS)
def test_what_is_not_seen_makes_the_result_inconclusive(
    recorder: str, way: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for(recorder, tmp_path, "unseen_writes")
    for verb in ("lint", "run"):
        found = judged(run_nearfar, verb, recorder, program, way)
        assert found["findings"] == []
        assert found["verdict"] == ("clean" if way == "plain" else "inconclusive")
        unseen = [warning for warning in found["warnings"] if "stored unseen" in warning]
        assert len(unseen) == (way != "plain")


@pytest.mark.parametrize("recorder", RECORDERS)
def test_locks_in_the_pool_are_not_judged(
    recorder: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for(recorder, tmp_path, "locks_in_pool", "-pthread")
    flags = ("--json", "-", "--recorder", recorder)
    done = run_nearfar("crash", "lint", *flags, "--", str(program), str(tmp_path / "pool"))
    found = document(done)
    assert (done.code, found["verdict"]) == (0, "clean"), done
    assert not [one for one in found["findings"] if one["level"] == "error"]


@pytest.mark.parametrize("way", ["inherit", "robust"])
@pytest.mark.parametrize("recorder", RECORDERS)
def test_mutexes_that_the_kernel_changes(
    recorder: str, way: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for(recorder, tmp_path, "kernel_locks", "-pthread")
    pool = str(tmp_path / "pool")
    flags = ("--json", "-", "--recorder", recorder)
    done = run_nearfar("crash", "lint", *flags, "--", str(program), pool, way)
    found = document(done)
    assert not [one for one in found["findings"] if one["level"] == "error"], found
    refused = [one for one in found["warnings"] if "mutex lies in the pool" in one]
    if recorder == "instrumented":
        assert (done.code, found["warnings"]) == (0, [])
        return
    # The program itself ends well.
    assert (done.code, found["warnings"]) == (3, refused), done
    again = run_nearfar("crash", "run", "--", str(program), pool, way)
    again.assert_refused(3, "mutex lies in the pool")


@pytest.mark.parametrize("recorder", RECORDERS)
def test_a_program_may_track_its_stores_by_protected_pages(
    recorder: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for(recorder, tmp_path, "tracked_writes")
    for verb in ("run", "lint"):
        found = judged(run_nearfar, verb, recorder, program)
        errors = [one for one in found["findings"] if one.get("level") != "note"]
        assert (errors, found["warnings"]) == ([], []), found
    found = judged(run_nearfar, "lint", recorder, program, "forget")
    errors = [one for one in found["findings"] if one["level"] == "error"]
    assert [one["rule"] for one in errors] == ["unflushed"], found
    assert Path(errors[0]["place"]).name in lines_with("tracked_writes", "// FORGOTTEN")


def test_threads_that_change_a_word_atomically_are_seen(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for("instrumented", tmp_path, "racing_atomics", "-pthread")
    found = judged(run_nearfar, "lint", "instrumented", program, "10000")
    errors = [one for one in found["findings"] if one["level"] == "error"]
    assert (errors, found["warnings"]) == ([], []), found
    pool = tmp_path / "pool"
    for times in (200, 400, 600):
        pool.unlink(missing_ok=True)
        flags = ("--recorder", "instrumented", "--budget", "10", "--checker", "true", "--json", "-")
        done = run_nearfar("crash", "run", *flags, "--", str(program), str(pool), str(times))
        found = document(done)
        assert found["warnings"] == []
        # Four stores of each of four threads, and each new maximum but the first, 0, once.
        assert found["stores"] == 4 * 4 * times + times - 1


@pytest.mark.parametrize("recorder", RECORDERS)
def test_a_pool_that_is_mapped_unseen_is_named(
    recorder: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for(recorder, tmp_path, "unseen_mapping")
    pool = str(tmp_path / "pool")
    flags = ("crash", "lint", "--recorder", recorder)
    for more, way, said in (
        ((), "", f"maps {pool} by a system call that the recorder does not see"),
        (("--pool", pool), "", f"maps {pool} by a system call that the recorder does not see"),
        ((), "empty", f"maps {pool} while it is empty"),
    ):
        Path(pool).unlink(missing_ok=True)
        run_nearfar(*flags, *more, "--", str(program), pool, way).assert_refused(3, said)
    found = judged(run_nearfar, "run", recorder, program, "late")
    assert found["verdict"] == "inconclusive"
    assert any("maps the pool in a way that" in warning for warning in found["warnings"]), found


@pytest.fixture
def small_tmpfs(tmp_path: Path) -> Iterator[Path]:
    """A file system in memory with room for 16 pages."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs the right to mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("recorder", RECORDERS)
def test_a_pool_in_a_full_file_system(
    recorder: str, run_nearfar: RunNearfar, small_tmpfs: Path, tmp_path: Path
) -> None:
    program = compiled_for(recorder, tmp_path, "full_tmpfs")
    pool = small_tmpfs / "pool"
    flags = ("--recorder", recorder, "--json", "-", "--", str(program), str(pool))
    for verb in ("run", "lint"):
        pool.unlink(missing_ok=True)
        found = document(run_nearfar("crash", verb, *flags, "40", "8"))
        assert (found["verdict"], found["warnings"]) == ("clean", [])
        assert pool.stat().st_blocks * 512 == 8 * 4096  # the recorder takes no space
        pool.unlink()
        found = document(run_nearfar("crash", verb, *flags, "40", "40"))
        assert found["verdict"] == "inconclusive"
        said = f"was ended by SIGBUS: the file system of {pool} is full"
        assert any(said in warning for warning in found["warnings"]), found
    pool.unlink()
    (small_tmpfs / "other").write_bytes(bytes(64 << 10))
    done = run_nearfar("crash", "lint", *flags[:2], *flags[4:], "40", "40")
    done.assert_refused(3, said)


@pytest.mark.parametrize(
    "way", ["context", "thread", "handler", "assembly", "deep", "null", "none"]
)
def test_a_stack_in_the_pool_is_refused(way: str, run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compiled_for(
        "preload", tmp_path, "stack_in_pool", "-pthread", "-Wno-infinite-recursion"
    )
    for verb in ("lint", "run"):
        if verb == "run" and way in ("deep", "null"):
            continue  # such a program is not started on images
        found = judged(run_nearfar, verb, "preload", program, way)
        ended = [one for one in found["warnings"] if "was ended by SIGSEGV" in one]
        refused = [one for one in found["warnings"] if "a stack of " in one]
        if way == "none":
            assert found["warnings"] == []
            continue
        assert found["verdict"] == "inconclusive"
        # The program goes on where that is known before.
        assert len(ended) == (way in ("assembly", "deep", "null"))
        assert len(refused) == (way != "null")


def test_one_command_may_compile_and_link(tmp_path: Path) -> None:
    """It links ThreadSanitizer's library, too."""
    flags = [*shlex.split(compile_flags()), *shlex.split(link_flags()), "-pthread", "-mcx16"]
    program = tmp_path / "wide_atomics"
    subprocess.run(["gcc", PROGRAMS / "wide_atomics.c", "-o", program, *flags], check=True)
    subprocess.run([program], check=True)


def test_instrumented_programs_can_change_16_bytes_atomically(tmp_path: Path) -> None:
    program = compiled_for("instrumented", tmp_path, "wide_atomics", "-pthread", "-mcx16")
    subprocess.run([program], check=True)


def test_stores_of_unknown_kind_are_no_violation(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    """Several threads store to one page at the same time; non-temporal stores need no flush."""
    program = compiled_for("preload", tmp_path, "streaming_threads", "-pthread")
    for verb, flags in (("lint", ()), ("run", ("--budget", "1000"))):
        for number in range(2):
            pool = tmp_path / f"{verb}{number}"
            command = ("crash", verb, "--json", "-", *flags, "--", str(program), str(pool))
            found = document(run_nearfar(*command))
            assert found["verdict"] != "violation"


def test_a_finding_that_can_depend_on_a_store_of_unknown_order_is_not_certain() -> None:
    text = ("broken", "", "flush", "a.c:1", "", 0, 0, False, False, False, 1, 1, "")
    line = BlamedLine(64, False, "a.c:1")
    logic, placed = Finding(*text), Finding(*text, lines=[line])
    unknown = Finding(*text, lines=[line, BlamedLine(128, True, "")])
    certain = [logic.is_certain(), placed.is_certain(), placed.is_certain({128})]
    uncertain = [logic.is_certain({128}), placed.is_certain({64}), unknown.is_certain()]
    assert (certain, uncertain) == ([True] * 3, [False] * 3)
    result = Exploration(violations=1, findings=[logic])
    assert result.verdict == "violation"
    result.unplaced.add(128)
    assert result.verdict == "inconclusive"
    result.findings.append(placed)
    assert result.verdict == "violation"
