"""``nearfar crash run`` on programs: mistakes are found and named at their line."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from compiling import compile_c
from conftest import RunNearfar
from crashing import (
    BUGGY,
    FIXED,
    INCLUDE,
    SHOWN,
    crash_run,
    document,
    interrupted,
    needs_explorer,
    needs_libpmem,
)
from nearfar.process.helpers import shipped
from nearfar.verify.recorder import compile_flags, link_flags

pytestmark = needs_explorer


@needs_libpmem
def test_a_missing_flush_is_in_json_and_sarif(run_nearfar: RunNearfar, tmp_path: Path) -> None:
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

    program = compile_c(tmp_path, "journal", FIXED, "-lpmem")
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
    plain = compile_c(tmp_path, "journal", BUGGY, "-lpmem")  # whose stores are not recorded
    flags = ("--recorder", "instrumented")
    refused = crash_run(run_nearfar, plain, checker, *flags, json="no.json")
    refused.assert_refused(2, "no code of the program is compiled for the recorder")
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
def test_a_killed_program_leaves_a_truncated_log(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    checker = compile_c(tmp_path, "check", SHOWN["check.c"])
    killed = BUGGY.replace("  return 0;\n}\n", "  raise(9);\n}\n").replace(
        "#include <stdio.h>", "#include <stdio.h>\n#include <signal.h>"
    )
    program = compile_c(tmp_path, "journal", killed, "-lpmem")
    done = crash_run(run_nearfar, program, checker)
    assert "cut short" in done.stderr
    assert "was ended by SIGKILL" in done.stderr


REPORTING = """
#include <nearfar/crash_intrinsics.h>
int main(void) {
  nearfar_crash_begin(1);
  nearfar_crash_end(1);
  nearfar_crash_host(1);
  _mm_sfence();
  return 0;
}
"""


def test_reports_do_nothing_without_the_recorder(tmp_path: Path) -> None:
    program = compile_c(tmp_path, "reporting", REPORTING, INCLUDE)
    assert subprocess.run([str(program)], check=False).returncode == 0


COPIES = """
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
struct block { char bytes[40]; };
int main(int argc, char **argv) {
  int fd = open(argv[argc - 1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) return 1;
  char *pool = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  struct block block = {{1, 2, 3}};
  block.bytes[4] = argc;
  memcpy(pool + 64, &block, 32);
  *(struct block *)(pool + 128) = block;
  memset(pool + 192, 1, 24);
  strcpy(pool + 256, "hello");
  return 0;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
def test_copies_of_an_instrumented_program_are_seen(
    level: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    flags = compile_flags().split()
    object_file = compile_c(tmp_path, "copies.o", COPIES, level, *flags, "-c")
    program = tmp_path / "copies"
    subprocess.run(["gcc", object_file, "-o", program, *link_flags().split()], check=True)
    recorder = ("--recorder", "instrumented", "--json", "-")
    done = run_nearfar("crash", "lint", *recorder, "--", str(program), str(tmp_path / "pool"))
    found = document(done)
    assert (len(found["findings"]), found["warnings"]) == (4, []), found


@needs_libpmem
@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        ('#!/bin/sh\n: > "$1"\n', 2, "the checker changed the size of its image from "),
        ("not a program\n", 2, "Exec format error"),
    ],
)
def test_a_checker_that_cannot_check_is_refused(
    script: str, code: int, words: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    checker = tmp_path / "checker"
    checker.write_text(script)
    checker.chmod(0o755)
    program = compile_c(tmp_path, "journal", BUGGY, "-lpmem")
    pool = str(tmp_path / "pool")
    done = run_nearfar("crash", "run", "--checker", str(checker), "--", str(program), pool)
    done.assert_refused(code, words)


ORDERS = """
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#include <immintrin.h>
int main(int argc, char **argv) {
  int fd = open(argv[argc - 1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) return 1;
  volatile uint64_t *pool = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (pool[8] && !pool[16]) return 9;
  pool[16] = 1; /* SITE */
  pool[8] = 1;
  FLUSHES
  return 0;
}
"""
FLUSH = {word: f"_mm_clflushopt((void *)&pool[{word}]);" for word in (8, 16)}
FENCE = "_mm_sfence();"


@pytest.mark.parametrize(
    ("flushes", "missing"),
    [
        (f"{FLUSH[8]} {FENCE}", "flush"),
        (f"{FLUSH[8]} {FENCE} {FLUSH[16]} {FENCE}", "late_flush"),
        (f"{FLUSH[16]} {FLUSH[8]} {FENCE}", "fence"),
        (f"{FLUSH[16]} {FLUSH[8]}", "fence"),
    ],
)
def test_what_a_store_lacks_before_the_next_is_named(
    flushes: str, missing: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = ORDERS.replace("FLUSHES", flushes)
    program = compile_c(tmp_path, "orders", text, "-g", "-mclflushopt")
    pool = str(tmp_path / "pool")
    done = run_nearfar("crash", "run", "--json", "-", "--", str(program), pool)
    (finding,) = document(done)["findings"]
    assert (finding["missing"], finding["store"].rpartition(":")[2]) == (missing, "12")


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
    missing = {finding["missing"] for finding in found["findings"]}
    assert "flush" in missing
    assert missing <= {"flush", "late_flush"}
    named = {Path(finding["store"]).name.partition(":")[2] for finding in found["findings"]}
    assert str(plain) in named


@needs_libpmem
def test_a_program_that_fails_is_inconclusive(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    failing = FIXED.replace("  return 0;\n}\n", "  return 2;\n}\n")
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
    program = compile_c(tmp_path, "journal", FIXED, "-lpmem")
    done = crash_run(run_nearfar, program, "true", "--budget", "4")
    found = document(done)
    assert (done.code, found["verdict"]) == (3, "inconclusive"), done
    assert found["stores_tried"] < found["stores"]
    done = crash_run(run_nearfar, program, "true", "--budget", "12")
    assert (done.code, document(done)["verdict"]) == (0, "clean"), done


@needs_libpmem
def test_the_limit_on_violations_is_reported(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    many = BUGGY.replace("value < 103", "value < 163")
    program = compile_c(tmp_path, "journal", many, "-lpmem")
    flags = ("crash", "run", "--checker", "false")
    done = run_nearfar(*flags, "--", str(program), str(tmp_path / "pool"))
    assert done.code == 1
    assert "200 violations; the exploration ended at this number" in done.stdout


@needs_libpmem
def test_ctrl_c_keeps_the_findings(tmp_path: Path) -> None:
    program = compile_c(tmp_path, "journal", BUGGY, "-lpmem")
    found, err = interrupted(program, "sleep 0.05; echo bad; exit 1", 5, signal.SIGINT)
    assert "interrupted" in err
    assert "Traceback" not in err
    assert found["states_left"] > 0
    assert Path(tmp_path / found["findings"][0]["image"]).stat().st_size > 0
