"""Threads that interleave: ``nearfar crash run --interleave``."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiling import compile_c
from conftest import Outcome, RunNearfar
from crashing import INCLUDE, PROGRAMS, compiled_for, document, needs_libpmem

pytestmark = needs_libpmem

JSON = ("--json", "-")
TWO_THREADS = (PROGRAMS / "two_threads.c").read_text()
# What has been written or read must be there. Operation 1 wrote, 2 read the value, 3 read nothing.
CHECKED = r"""
#include <nearfar/crash_checker.h>
#include <stdint.h>
#include <stdio.h>
int check(const struct nearfar_crash_image *image, char *why, size_t bytes) {
  const uint64_t *words = image->memory;
  snprintf(why, bytes, "the value is lost");
  for (size_t i = 0; i < image->operation_count; ++i)
    if (image->operations[i] < 3 && words[0] != 7)
      return NEARFAR_CRASH_BROKEN;
  return NEARFAR_CRASH_GOOD;
}
"""
CHECK_PROGRAM = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
  uint64_t value = 0;
  FILE *file = fopen(argv[1], "rb");
  if (file == NULL || fread(&value, sizeof value, 1, file) != 1)
    return 2;
  const char *ended = getenv("NEARFAR_CRASH_OPERATIONS");
  puts("the value is lost");
  return value != 7 && (strchr(ended, '1') || strchr(ended, '2'));
}
"""


def interleaved(
    run: RunNearfar, program: Path, checker: str, *flags: str, most: str = "9"
) -> Outcome:
    asked = ("--interleave", most, "--checker", checker, *flags)
    return run("crash", "run", *asked, "--", str(program), "pool")


@pytest.fixture
def check_function(tmp_path: Path) -> str:
    compile_c(tmp_path, "check.so", CHECKED, "-shared", "-fPIC", INCLUDE)
    return f"{tmp_path / 'check.so'}:check"


@pytest.mark.parametrize("recorder", ["preload", "instrumented"])
def test_a_value_that_is_visible_before_it_is_durable(
    recorder: str, check_function: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for(recorder, tmp_path, "two_threads", INCLUDE)
    done = interleaved(run_nearfar, program, check_function, *JSON, "--recorder", recorder)
    found = document(done)
    assert done.code == 1, done
    assert (found["interleavings"], found["interleavings_tried"]) == (3, 3)
    (finding,) = found["findings"]
    line = 1 + TWO_THREADS.splitlines().index("  pool->value = 7; // visible from here")
    assert finding["store"].endswith(f"two_threads.c:{line}")
    assert finding["held"].endswith(f"two_threads.c:{line}")
    assert finding["operations"] == [2]
    again = run_nearfar(*finding["replay"].split()[1:])
    assert again.code == 1, again
    assert "the value is lost" in again.stdout


def test_a_reader_that_waits_until_it_is_durable(
    check_function: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    flags = ("-O1", "-DFIX", INCLUDE, "-lpmem")
    program = compile_c(tmp_path, "two", TWO_THREADS, *flags)
    done = interleaved(run_nearfar, program, check_function, *JSON)
    assert (done.code, document(done)["interleavings_tried"]) == (0, 3), done
    (tmp_path / "pool").unlink()
    fewer = interleaved(run_nearfar, program, check_function, *JSON, most="2")
    assert (fewer.code, document(fewer)["verdict"]) == (3, "inconclusive"), fewer


def test_a_checker_that_is_a_program_reads_the_operations(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    checker = compile_c(tmp_path, "check", CHECK_PROGRAM)
    flags = ("-O1", INCLUDE, "-lpmem")
    program = compile_c(tmp_path, "two", TWO_THREADS, *flags)
    done = interleaved(run_nearfar, program, str(checker), *JSON)
    assert [f["operations"] for f in document(done)["findings"]] == [[2]], done


def test_each_interleaving_requires_a_new_pool_and_operations(
    check_function: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    flags = (INCLUDE, "-lpmem")
    program = compile_c(tmp_path, "two", TWO_THREADS, *flags)
    (tmp_path / "pool").write_bytes(bytes(128))
    old = interleaved(run_nearfar, program, check_function)
    old.assert_refused(2, "is older than the first")
    (tmp_path / "pool").unlink()
    silent = TWO_THREADS.replace("nearfar_crash_begin(", "(void)(")
    program = compile_c(tmp_path, "silent", silent, *flags)
    interleaved(run_nearfar, program, check_function).assert_refused(2, "report the operations")
    hosts = ("--hosts", "2", "--recorder", "instrumented")
    both = interleaved(run_nearfar, program, check_function, *hosts)
    both.assert_refused(2, "leave out --interleave")
