"""``nearfar crash run``: checkers that crash, hang, refuse, or are C functions."""

from __future__ import annotations

from pathlib import Path

from compiling import compile_c
from conftest import RunNearfar
from crashing import (
    BUGGY,
    FIXED,
    INCLUDE,
    SHOWN,
    crash_run,
    document,
    needs_explorer,
    needs_libpmem,
)

pytestmark = needs_explorer


@needs_libpmem
def test_failures_of_a_checker_are_distinguished(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compile_c(tmp_path, "journal", BUGGY, "-lpmem")
    for command, failure, words in (
        ("sh -c 'kill -SEGV $$'", "crashed", "signal 11"),
        ("sh -c 'sleep 60'", "hung", "did not end within 200 ms"),
        ("sh -c 'echo no magic; exit 2'", "refused", "no magic"),
    ):
        done = crash_run(run_nearfar, program, command, "--budget", "2", "--time", "0.2")
        assert done.code == 1, done
        finding = document(done)["findings"][0]
        assert finding["failure"] == failure
        assert words in finding["what"]


FUNCTION = """
#include <stdlib.h>
int crash(const struct nearfar_crash_image *image, char *why, size_t bytes) {
  return *(volatile int *)bytes;
}
int leave(const struct nearfar_crash_image *image, char *why, size_t bytes) { exit(0); }
int hang(const struct nearfar_crash_image *image, char *why, size_t bytes) {
  for (volatile int again = 1; again;) {
  }
  return 0;
}
"""


@needs_libpmem
def test_a_checker_that_is_a_c_function(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    functions = SHOWN["checker.c"] + FUNCTION
    library = compile_c(tmp_path, "check.so", functions, INCLUDE, "-shared", "-fPIC")
    program = compile_c(tmp_path, "journal", BUGGY, "-lpmem")
    done = crash_run(run_nearfar, program, f"{library}:check")
    assert done.code == 1, done
    finding = document(done)["findings"][0]
    assert (finding["missing"], finding["what"]) == ("flush", "entry 0 is torn")
    assert "entry 0 is torn" in run_nearfar("crash", "replay", finding["image"]).stdout
    for name, failure, words in (
        ("crash", "crashed", "signal 11"),
        ("leave", "crashed", "by exit()"),
        ("hang", "hung", "did not end within 200 ms"),
    ):
        done = crash_run(
            run_nearfar, program, f"{library}:{name}", "--budget", "2", "--time", "0.2"
        )
        finding = document(done)["findings"][0]
        assert (done.code, finding["failure"]) == (1, failure)
        assert words in finding["what"]
    crash_run(run_nearfar, program, f"{library}:absent", json="no.json").assert_refused(
        2, "undefined symbol: absent"
    )
    program = compile_c(tmp_path, "journal", FIXED, "-lpmem")
    done = crash_run(run_nearfar, program, f"{library}:check")
    assert (done.code, document(done)["states_left"]) == (0, 0), done


@needs_libpmem
def test_only_the_first_hang_of_a_checker_takes_the_full_time(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "journal", BUGGY, "-lpmem")
    lives = tmp_path / "lives"
    lives.mkdir()
    checker = f"sh -c 'while echo >> {lives}/$$; do sleep 0.1; done'"
    done = crash_run(run_nearfar, program, checker, "--budget", "20", "--time", "4")
    lengths = sorted((len(life.read_text()) for life in lives.iterdir()), reverse=True)
    assert len(lengths) > 1
    assert lengths[1] <= 10  # tenths of a second, of forty
    finding = document(done)["findings"][0]
    assert (finding["failure"], finding["what"]) == (
        "hung",
        "the checker did not end within 4000 ms",
    )
