"""``nearfar crash run`` on programs: mistakes are found and named at their line."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compiling import compile_c
from conftest import RunNearfar
from crashing import INCLUDE, PROGRAMS, crash_run, document, needs_libpmem
from documents import read
from nearfar.process.helpers import shipped

_PAGE = read(Path(__file__).parent.parent / "docs" / "crash.md")
#: The files of the tutorial, which tests/test_docs.py follows to its end.
SHOWN = dict(step for step in _PAGE.steps if isinstance(step, tuple))
BUGGY = SHOWN["journal.c"]
MENDED = BUGGY.replace("// FIX", "pmem_persist(e, sizeof *e);")


# Without libpmemobj there is no explorer; with it, one that was not built is a failure.
pytestmark = pytest.mark.skipif(
    not Path("/usr/include/libpmemobj.h").exists(), reason="needs libpmemobj-dev: no explorer"
)


def sites_of(text: str, bug: int) -> list[int]:
    """Lines of a program that say that they hold a bug."""
    return [i for i, line in enumerate(text.splitlines(), 1) if re.search(rf"SITE {bug}\b", line)]


@needs_libpmem
def test_a_missing_flush_is_told_to_programs_and_editors(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    assert len(BUGGY.splitlines()) <= 42
    checker = compile_c(tmp_path, "check", SHOWN["check.c"])
    program = compile_c(tmp_path, "journal", BUGGY, "-lpmem")
    done = crash_run(run_nearfar, program, checker, "--sarif", "found.sarif")
    assert done.code == 1, done
    finding = document(done)["findings"][0]
    assert finding["missing"] == "flush"
    assert finding["what"] == "entry 0 is torn"
    assert re.search(r"journal\.c:(18|19)$", finding["store"])
    assert finding["before"].endswith("journal.c:21")
    result = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]["results"][0]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region["startLine"] in (18, 19)

    program = compile_c(tmp_path, "journal", MENDED, "-lpmem")
    done = crash_run(run_nearfar, program, checker)
    assert (done.code, document(done)["states_left"]) == (0, 0), done


@needs_libpmem
@pytest.mark.parametrize(
    "compiler",
    ["gcc -fsanitize=thread", "clang-14 -fsanitize-coverage=bb,trace-stores -fno-builtin"],
)
def test_a_program_compiled_for_the_recorder(
    compiler: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    if shutil.which(compiler.split()[0]) is None:
        pytest.skip(f"needs {compiler.split()[0]}")
    checker = compile_c(tmp_path, "check", SHOWN["check.c"])
    plain = compile_c(tmp_path, "journal", BUGGY, "-lpmem")  # whose stores nobody sees
    refused = crash_run(run_nearfar, plain, checker, "--recorder", "instrumented")
    refused.assert_refused(2, "no store of the program into")
    assert "no store" in refused.stderr
    subprocess.run([*compiler.split(), "-g", "-O1", "-c", "journal.c"], cwd=tmp_path, check=True)
    library = str(shipped("libnearfar-crash-recorder.so"))
    subprocess.run(
        ["gcc", "journal.o", "-o", "journal", library, "-lpmem"], cwd=tmp_path, check=True
    )
    done = crash_run(run_nearfar, tmp_path / "journal", checker, "--recorder", "instrumented")
    assert done.code == 1, done
    finding = document(done)["findings"][0]
    assert finding["missing"] == "flush"
    assert re.search(r"journal\.c:(18|19)$", finding["store"])


@needs_libpmem
def test_each_failure_of_a_checker_is_told_as_what_it_is(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "journal", BUGGY, "-lpmem")
    for command, failure, words in (
        ("sh -c 'kill -SEGV $$'", "crashed", "signal 11"),
        ("sh -c 'sleep 60'", "hung", "did not end within 200 ms"),
        ("sh -c 'echo no magic; exit 2'", "refused", "the image does not open: no magic"),
    ):
        done = crash_run(run_nearfar, program, command, "--budget", "2", "--time", "0.2")
        assert done.code == 1, done
        finding = document(done)["findings"][0]
        assert finding["failure"] == failure
        assert words in finding["what"]


@pytest.mark.xfail(
    strict=True, reason="issue 25: a log that ends before its first store is not called cut short"
)
@needs_libpmem
def test_a_program_that_is_killed_leaves_a_log_cut_short(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    checker = compile_c(tmp_path, "check", SHOWN["check.c"])
    killed = BUGGY.replace("  return 0;\n}\n", "  raise(9);\n}\n").replace(
        "#include <stdio.h>", "#include <stdio.h>\n#include <signal.h>"
    )
    program = compile_c(tmp_path, "journal", killed, "-lpmem")
    done = crash_run(run_nearfar, program, checker)
    assert "cut short" in done.stderr
    assert "ended with -9" in done.stderr


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
    crash_run(run_nearfar, program, f"{library}:absent").assert_refused(
        2, "undefined symbol: absent"
    )
    program = compile_c(tmp_path, "journal", MENDED, "-lpmem")
    done = crash_run(run_nearfar, program, f"{library}:check")
    assert (done.code, document(done)["states_left"]) == (0, 0), done


INTRINSICS = """
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

struct journal { uint64_t count, padding[7], value[16]; };

int main(int argc, char **argv) {
  int fd = open(argv[argc - 1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) return 1;
  struct journal *j = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  for (uint64_t i = 0; i < 3; ++i) {
    nearfar_crash_begin(i);
    _mm_stream_si64((long long *)&j->value[2 * i], (long long)(100 + i));
    j->value[2 * i + 1] = 200 + i; /* PLAIN */
#if FLUSHES
    _mm_clwb(&j->value[2 * i + 1]);
#endif
    _mm_sfence();
    j->count = i + 1;
    _mm_clflushopt(&j->count);
    _mm_sfence();
    nearfar_crash_end(i);
  }
  return 0;
}
"""
INTRINSICS_CHECK = """
#include <nearfar/crash_checker.h>
#include <stdint.h>
nearfar_crash_checker check;
int check(const struct nearfar_crash_image *image, char *why, size_t bytes) {
  const uint64_t *j = image->memory;
  if (j[0] < image->acknowledged || j[0] > 3) return 1;
  for (uint64_t i = 0; i < j[0]; ++i)
    if (j[8 + 2 * i] != 100 + i || j[9 + 2 * i] != 200 + i) return 1;
  return 0;
}
"""


@needs_libpmem
@pytest.mark.parametrize("flushes", [0, 1])
def test_flushes_written_as_intrinsics(
    flushes: int, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    library = compile_c(tmp_path, "check.so", INTRINSICS_CHECK, INCLUDE, "-shared", "-fPIC")
    program = compile_c(
        tmp_path,
        "stream",
        INTRINSICS,
        INCLUDE,
        f"-DFLUSHES={flushes}",
        "-include",
        "nearfar/crash_intrinsics.h",
    )
    done = crash_run(run_nearfar, program, f"{library}:check")
    found = document(done)
    if flushes:
        assert (done.code, found["violations"], found["states_left"]) == (0, 0, 0), done
        return
    plain = 1 + INTRINSICS[: INTRINSICS.index("PLAIN")].count("\n")
    assert done.code == 1
    assert f"stream.c:{plain}" in {Path(one["store"]).name for one in found["findings"]}


#: The same without the header: the instructions alone show what is flushed.
BARE = """
#include <immintrin.h>
static void nearfar_crash_begin(uint64_t i) { (void)i; }
static void nearfar_crash_end(uint64_t i) { (void)i; }
"""


@needs_libpmem
@pytest.mark.parametrize("recorder", ["preload", "instrumented"])
@pytest.mark.parametrize("flushes", [0, 1])
def test_flushes_written_as_instructions(
    flushes: int, recorder: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    library = compile_c(tmp_path, "check.so", INTRINSICS_CHECK, INCLUDE, "-shared", "-fPIC")
    source = INTRINSICS.replace("\nstruct journal", BARE + "\nstruct journal", 1)
    if recorder == "instrumented":  # its recorder does not see what intrinsics store
        source = source.replace(
            "_mm_stream_si64((long long *)&j->value[2 * i], (long long)(100 + i));",
            "j->value[2 * i] = 100 + i; _mm_clwb(&j->value[2 * i]);",
        )
    flags = [f"-DFLUSHES={flushes}", "-mclwb", "-mclflushopt"]
    if recorder == "instrumented":
        object_file = compile_c(tmp_path, "stream.o", source, *flags, "-fsanitize=thread", "-c")
        program = tmp_path / "stream"
        recorded = str(shipped("libnearfar-crash-recorder.so"))
        subprocess.run(["gcc", object_file, "-o", program, recorded], check=True)
    else:
        program = compile_c(tmp_path, "stream", source, *flags)
    done = crash_run(run_nearfar, program, f"{library}:check", "--recorder", recorder)
    found = document(done)
    if flushes:
        assert (done.code, found["verdict"], found["states_left"]) == (0, "clean", 0), done
        return
    plain = 1 + source[: source.index("PLAIN")].count("\n")
    assert done.code == 1
    assert {finding["missing"] for finding in found["findings"]} == {"flush"}
    named = {Path(finding["store"]).name.partition(":")[2] for finding in found["findings"]}
    assert str(plain) in named


@needs_libpmem
def test_a_program_that_fails_is_not_said_to_be_clean(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    failing = MENDED.replace("  return 0;\n}\n", "  return 2;\n}\n")
    program = compile_c(tmp_path, "journal", failing, "-lpmem")
    done = crash_run(run_nearfar, program, "true")
    assert (done.code, document(done)["verdict"]) == (3, "inconclusive"), done
    assert "journal ended with 2" in done.stderr
    shown = run_nearfar(
        "crash", "run", "--checker", "true", "--", str(program), str(tmp_path / "p")
    )
    assert "inconclusive: no violation, but the program failed" in shown.stdout


@needs_libpmem
def test_a_budget_that_does_not_reach_every_store_is_inconclusive(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "journal", MENDED, "-lpmem")
    done = crash_run(run_nearfar, program, "true", "--budget", "4")
    found = document(done)
    assert (done.code, found["verdict"]) == (3, "inconclusive"), done
    assert found["stores_tried"] < found["stores"]
    done = crash_run(run_nearfar, program, "true", "--budget", "12")
    assert (done.code, document(done)["verdict"]) == (0, "clean"), done


@needs_libpmem
def test_a_checker_that_hangs_is_waited_for_in_full_once(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "journal", BUGGY, "-lpmem")
    marks = tmp_path / "marks"
    checker = f"sh -c 'echo >> {marks}; sleep 60'"
    started = time.monotonic()
    done = crash_run(run_nearfar, program, checker, "--budget", "20", "--time", "4")
    assert time.monotonic() - started < 4 * len(marks.read_text()) / 2
    finding = document(done)["findings"][0]
    assert (finding["failure"], finding["what"]) == (
        "hung",
        "the checker did not end within 4000 ms",
    )


@needs_libpmem
def test_a_number_of_violations_that_ended_the_search_says_so(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    many = BUGGY.replace("value < 103", "value < 163")
    program = compile_c(tmp_path, "journal", many, "-lpmem")
    flags = ("crash", "run", "--checker", "false")
    done = run_nearfar(*flags, "--", str(program), str(tmp_path / "pool"))
    assert done.code == 1
    assert "200 violations; the exploration ended at this number" in done.stdout


@needs_libpmem
@pytest.mark.long
@pytest.mark.parametrize("bug", range(11))
def test_known_kinds_of_bugs_are_found_and_named(
    bug: int, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = (PROGRAMS / "intset.c").read_text()
    checker = compile_c(tmp_path, "check", text, "-DCHECK")
    program = compile_c(tmp_path, "intset", text, f"-DBUG={bug}", "-lpmem")
    done = crash_run(run_nearfar, program, checker, "--budget", "1500")
    found = document(done)
    if bug == 0:
        assert (done.code, found["states_left"]) == (0, 0), done
        return
    lines = sites_of(text, bug)
    named = {int(finding["store"].rpartition(":")[2]) for finding in found["findings"]}
    assert done.code == 1
    assert set(lines) & named, found["findings"]


@needs_libpmem
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "bug"),
    [*(("skip_list_obj", bug) for bug in range(9)), *(("removed_value", bug) for bug in range(2))],
)
def test_known_bugs_on_libpmemobj_are_found_and_named(
    name: str, bug: int, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = (PROGRAMS / f"{name}.c").read_text()
    library = compile_c(
        tmp_path, "check.so", text, INCLUDE, "-DCHECK", "-shared", "-fPIC", "-lpmemobj"
    )
    program = compile_c(tmp_path, name, text, INCLUDE, f"-DBUG={bug}", "-lpmemobj")
    pool = tmp_path / "pool"
    subprocess.run([program, "make", pool], check=True)
    done = run_nearfar(
        "crash",
        "run",
        "--checker",
        f"{library}:check",
        "--budget",
        "2500",
        "--json",
        "-",
        "--",
        str(program),
        "run",
        str(pool),
        timeout=600,
    )
    found = document(done)
    assert not found["warnings"]
    if bug == 0:
        assert (done.code, found["violations"]) == (0, 0), done
        return
    (line,) = sites_of(text, bug)
    named = {Path(finding["store"]).name for finding in found["findings"]}
    assert done.code == 1
    assert f"{name}.c:{line}" in named, found["findings"]


@needs_libpmem
@pytest.mark.parametrize("bug", [0, 1])
def test_snapshots_of_a_library_that_alone_sees_libpmemobj(
    bug: int, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = (PROGRAMS / "opened_pair.c").read_text()
    shared = ("-shared", "-fPIC", INCLUDE, f"-DBUG={bug}")
    checker = compile_c(tmp_path, "check.so", text, "-DCHECK", *shared, "-lpmemobj")
    library = compile_c(tmp_path, "pair.so", text, *shared, "-lpmemobj")
    program = compile_c(tmp_path, "host", text, "-DHOST", "-ldl")
    pool = tmp_path / "pool"
    subprocess.run([program, library, "make", pool], check=True)
    done = run_nearfar(
        "crash",
        "run",
        "--checker",
        f"{checker}:check",
        "--budget",
        "400",
        "--json",
        "-",
        "--",
        str(program),
        str(library),
        "run",
        str(pool),
    )
    found = document(done)
    assert not found["warnings"]
    if bug == 0:
        assert (done.code, found["violations"]) == (0, 0), done
        return
    (line,) = sites_of(text, 1)
    assert done.code == 1, done
    finding = found["findings"][0]
    assert (finding["missing"], Path(finding["store"]).name) == ("log", f"pair.so.c:{line}")


@needs_libpmem
@pytest.mark.parametrize("bug", [0, 1])
def test_recovery_of_a_checker_is_crashed_too(
    bug: int, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = (PROGRAMS / "recovering.c").read_text()
    program = compile_c(tmp_path, "pair", text, "-lpmem")
    checker = compile_c(tmp_path, "check", text, "-DCHECK", f"-DBUG={bug}", "-lpmem")
    done = crash_run(run_nearfar, program, checker)
    found = document(done)
    assert found["recovery_states"] > 0
    if bug == 0:
        assert (done.code, found["violations"], found["states_left"]) == (0, 0, 0), done
        return
    assert done.code == 1
    finding = found["findings"][0]
    assert (finding["during_recovery"], finding["missing"]) == (True, "flush"), finding
    lines = [i for i, line in enumerate(text.splitlines(), 1) if "p->log.old;" in line]
    assert int(finding["store"].rpartition(":")[2]) in lines


@needs_libpmem
def test_ctrl_c_keeps_what_was_found(tmp_path: Path) -> None:
    program = compile_c(tmp_path, "journal", BUGGY, "-lpmem")
    marks = tmp_path / "marks"
    checker = f"sh -c 'echo >> {marks}; sleep 0.05; echo bad; exit 1'"
    flags = ["--checker", checker, "--json", "-"]
    with subprocess.Popen(
        [sys.executable, "-m", "nearfar.cli.app", "crash", "run", *flags, "--", program, "pool"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        while not (marks.exists() and len(marks.read_text()) > 5):
            assert child.poll() is None
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=600)
    assert child.returncode == 130, err
    assert "interrupted" in err
    assert "Traceback" not in err
    found = json.loads(out)
    assert found["states_left"] > 0
    assert Path(tmp_path / found["findings"][0]["image"]).stat().st_size > 0
