"""How ``crash run`` and ``crash lint`` end: what they say, and their exit codes."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from compiling import compile_c
from conftest import RunNearfar
from crashing import (
    BUGGY,
    SHOWN,
    crash_run,
    document,
    interrupted,
    needs_explorer,
    needs_libpmem,
)

pytestmark = [needs_explorer, needs_libpmem]


def test_a_full_disk_of_images_loses_no_finding(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    """/dev/full, in the place of images that are then written, is a full disk."""
    program = compile_c(tmp_path, "journal", BUGGY, "-lpmem")
    checker = tmp_path / "check"
    full = "\n".join(f"ln -sf /dev/full {tmp_path}/im/{n}.image" for n in range(1, 5))
    checker.write_text(f"#!/bin/sh\n{full}\necho bad\nexit 1\n")
    checker.chmod(0o755)
    flags = ("--images", str(tmp_path / "im"), "--checker", str(checker), "--json", "-")
    done = run_nearfar("crash", "run", *flags, "--", str(program), str(tmp_path / "pool"))
    found = document(done)
    assert (done.code, found["verdict"]) == (1, "violation"), done
    assert found["findings"]
    assert done.stderr.count("cannot keep images in ") == 1
    assert f"cannot keep images in {tmp_path}/im: No space left on device" in done.stderr
    assert not any(finding["image"] for finding in found["findings"])


#: Lines that no fence follows: many images, at one failure point.
UNFENCED = """
#include <libpmem.h>
#include <stdint.h>
int main(int argc, char **argv) {
  volatile uint64_t *words = pmem_map_file(argv[argc - 1], 1 << 16, PMEM_FILE_CREATE, 0600, 0, 0);
  for (int i = 0; i < 200; ++i) words[8 * i] = i + 1;
  return 0;
}
"""


def test_what_is_left_after_ctrl_c_is_an_upper_bound(tmp_path: Path) -> None:
    program = compile_c(tmp_path, "unfenced", UNFENCED, "-lpmem")
    found, _ = interrupted(program, "sleep 0.02", 20, signal.SIGTERM)
    assert found["states"] > 10
    assert found["failure_points"] >= 1
    assert found["states_left"] >= 2.0**200 - found["states"]


def test_a_slow_program_is_not_said_to_hang(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    text = BUGGY.replace("  for (uint64_t v", "  usleep(1500000);\n  for (uint64_t v")
    program = compile_c(tmp_path, "journal", "#include <unistd.h>\n" + text, "-lpmem")
    done = run_nearfar("crash", "run", "--time", "1", "--", str(program), str(tmp_path / "pool"))
    done.assert_refused(3, "the program did not end within the limit of 1 s (--time)")
    assert "give a larger --time" in done.stderr


#: Maps its first argument, and does what the second says.
POOL = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void *raw_mmap(long bytes, long protection, long flags, long file) {
  void *got;
  register long fourth __asm__("r10") = flags;
  register long fifth __asm__("r8") = file;
  register long sixth __asm__("r9") = 0;
  __asm__ volatile("syscall"
                   : "=a"(got)
                   : "a"(SYS_mmap), "D"(0L), "S"(bytes), "d"(protection), "r"(fourth), "r"(fifth),
                     "r"(sixth)
                   : "rcx", "r11", "memory");
  return got;
}
static volatile char *map(const char *path, int raw) {
  int fd = open(path, O_RDWR | O_CREAT, 0600);
  if (ftruncate(fd, 8192)) exit(9);
  return raw ? raw_mmap(8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd)
             : mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}
int main(int argc, char **argv) {
  const char *way = argv[2];
  if (!strcmp(way, "fails")) return 7;
  volatile char *pool = map(argv[1], 0);
  if (!strcmp(way, "child")) {
    if (!fork()) { pool[64] = 5; _exit(0); }
    wait(0);
  }
  if (!strcmp(way, "raw")) map(argv[1], 1)[64] = 5;
  if (!strcmp(way, "second")) map(argv[3], 0)[64] = 5;
  if (!strcmp(way, "killed")) {
    for (int i = 0; i < 3; ++i) pool[64 * i] += 5;
    kill(getpid(), SIGKILL);
  }
  if (!strcmp(way, "execs")) {
    pool[64] += 1;
    execl(argv[0], argv[0], argv[1], "ends", NULL);
  }
  if (!strcmp(way, "grows")) {
    pool[64] = 5;
    if (truncate(argv[1], 16384)) return 8;
  }
  if (!strcmp(way, "exits")) {
    pool[64] = argc > 3;
    return 5;
  }
  return 0;
}
"""


@pytest.mark.parametrize(
    ("way", "code", "words", "step"),
    [
        ("child", 3, "has changed (a process that ", "not in a child of fork()"),
        ("raw", 3, "the program also maps the pool in a way", "map the pool by mmap()"),
        ("second", 3, "it also maps '", "name the pool by --pool"),
        ("fails", 3, "mapped no file to be recorded (", "alone first: it must end with 0"),
        ("ends", 2, "the program changed nothing in ", "start with a new pool"),
    ],
)
@pytest.mark.parametrize("verb", ["lint", "run"])
def test_where_nothing_is_recorded_the_reason_is_named(
    verb: str, way: str, code: int, words: str, step: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "pool_user", POOL)
    pools = (str(tmp_path / "pool"), way, str(tmp_path / "other"))
    done = run_nearfar("crash", verb, "--", str(program), *pools)
    done.assert_refused(code, words)
    assert step in done.stderr
    if way == "fails":
        assert "pool_user ended with 7)" in done.stderr


def test_a_limit_of_file_sizes_is_named(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compile_c(tmp_path, "pool_user", POOL)
    pool = tmp_path / "pool"
    pool.write_bytes(bytes(8192))
    command = f"ulimit -f 0; exec {program} {pool} exits other"
    done = run_nearfar("crash", "lint", "--", "sh", "-c", command)
    assert "its limit of file sizes (ulimit -f) holds for the log" in done.stderr, done


def test_a_killed_program_is_explored_up_to_its_end(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "pool_user", POOL)
    flags = ("--checker", "true", "--json", "-")
    command = ("--", str(program), str(tmp_path / "pool"), "killed")
    done = run_nearfar("crash", "run", *flags, *command)
    found = document(done)
    assert (done.code, found["verdict"], found["stores"]) == (3, "inconclusive", 3), done
    assert found["states"] == 8
    assert any("cut short at offset" in warning for warning in found["warnings"])


def test_a_program_that_executes_itself_is_one_process(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "pool_user", POOL)
    command = ("--", str(program), str(tmp_path / "pool"), "execs")
    found = document(run_nearfar("crash", "run", "--checker", "true", "--json", "-", *command))
    assert (found["verdict"], found["stores"]) == ("inconclusive", 1)
    way = f"{program} executes a program that maps the pool for writing: its stores are not judged"
    assert way in found["warnings"]


def test_a_pool_that_grows_by_its_path_ends_the_recording(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "pool_user", POOL)
    found = document(
        run_nearfar(
            "crash", "lint", "--json", "-", "--", str(program), str(tmp_path / "p"), "grows"
        )
    )
    assert any("the pool has grown" in warning for warning in found["warnings"]), found


@pytest.mark.parametrize(
    ("stores", "code", "tail"),
    [(False, 3, "; inconclusive: the program failed"), (True, 1, "; the program failed")],
)
def test_lint_says_that_the_program_failed(
    stores: bool, code: int, tail: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = (
        POOL
        if stores
        else POOL.replace("    return 5;", "    msync((void *)pool, 8192, 4);\n    return 5;")
    )
    program = compile_c(tmp_path, "pool_user", text)
    done = run_nearfar("crash", "lint", "--", str(program), str(tmp_path / "pool"), "exits", "one")
    assert done.code == code, done
    assert done.stdout.rstrip().endswith(tail), done


def test_a_store_that_is_early_is_not_said_to_overwrite(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    """A flag that is durable before its data are stored overwrites nothing that is needed."""
    flag = BUGGY.replace("  e->value = value;", "  PERSIST\n  e->value = value;")
    flag = flag.replace(
        "  j->count++;\n  pmem_persist(&j->count, sizeof j->count);\n", "  // ADD\n"
    )
    flag = flag.replace("  PERSIST", "  j->count++;\n  pmem_persist(&j->count, sizeof j->count);")
    flag = flag.replace("// FIX", "pmem_persist(e, sizeof *e);").replace(
        "value < 103", "value < 101"
    )
    program = compile_c(tmp_path, "journal", flag, "-lpmem")
    checker = compile_c(tmp_path, "check", SHOWN["check.c"])
    done = crash_run(run_nearfar, program, checker, json="found.json")
    assert done.code == 1, done
    assert (
        "changes in place what recovery relies on, before the operation is complete" in done.stdout
    )


@pytest.mark.parametrize("verb", ["lint", "run"])
def test_stores_that_are_only_in_assembly_require_the_other_recorder(
    verb: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = POOL.replace("pool[64] = argc > 3;", '__asm__("movb $5, %0" : "=m"(pool[64]));')
    flags = [run_nearfar("crash", "flags", way).stdout.split() for way in ("compile", "link")]
    source, built = tmp_path / "assembly.c", tmp_path / "assembly"
    source.write_text(text.replace("return 5;", "return 0;"))
    subprocess.run(["gcc", *flags[0], "-c", source, "-o", f"{built}.o"], check=True)
    subprocess.run(["gcc", f"{built}.o", *flags[1], "-o", built], check=True)
    command = ("--recorder", "instrumented", "--", str(built), str(tmp_path / "pool"), "exits")
    done = run_nearfar("crash", verb, *command)
    done.assert_refused(3, "libraries and assembly store unseen")
    assert "record it with --recorder preload" in done.stderr
