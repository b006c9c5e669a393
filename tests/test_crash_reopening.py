"""``nearfar crash run`` without a checker: the program is started again, and its pool inspected."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from compiling import compile_c
from conftest import Outcome, RunNearfar
from crashing import BUGGY, FIXED, PROGRAMS, document, needs_explorer, needs_libpmem
from nearfar.verify.reopening import IMAGE, command_on_image
from test_crash_pools import STEPS, shm

__all__ = ["shm"]  # a fixture

pytestmark = [needs_explorer, needs_libpmem]

#: What the journal does when it starts: with the entries that are there, `FAILS` if one is torn.
VERIFYING = """
  for (uint64_t i = 0; i < j->count; ++i)
    if (j->entry[i].check != ~j->entry[i].value) FAILS;
  for (uint64_t value"""


def verifying(text: str, fails: str) -> str:
    verified = text.replace("\n  for (uint64_t value", VERIFYING.replace("FAILS", fails))
    return f"#include <assert.h>\n#include <stdlib.h>\n{verified}"


def reopened(
    run: RunNearfar,
    folder: Path,
    text: str,
    *flags: str,
    library: str = "-lpmem",
    json: str = "-",
) -> Outcome:
    program = compile_c(folder, "journal", text, library)
    (folder / "pool").unlink(missing_ok=True)
    return run("crash", "run", "--json", json, *flags, "--", str(program), "pool")


@pytest.mark.parametrize(
    ("fails", "failure", "words"),
    [
        ("assert(!torn)", "crashed", r"killed by signal 6 \(Aborted\): .*Assertion `!torn' failed"),
        ('exit((puts("torn"), 5))', "failed", "the program exited with 5: torn"),
        ("for (volatile int again = 1; again;) {}", "hung", r"the program did not end within \d+"),
    ],
)
def test_a_program_that_verifies_its_pool_needs_no_checker(
    fails: str, failure: str, words: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = verifying(BUGGY, fails).replace("j->count; ++i)\n", "j->count; ++i) {\n int torn = 1;\n")
    text = text.replace(f"{fails};", f"{fails};\n (void)torn; }}")
    done = reopened(run_nearfar, tmp_path, text, "--time", "2")
    found = document(done)
    assert (done.code, found["verdict"]) == (1, "violation"), done
    finding = found["findings"][0]
    assert (finding["failure"], finding["missing"]) == (failure, "flush")
    assert re.search(words, finding["what"]), finding
    stored = 1 + text[: text.index("e->value = value")].count("\n")
    assert int(finding["store"].rpartition(":")[2]) in (stored, stored + 1)
    again = run_nearfar("crash", "replay", finding["image"])
    assert again.code == 1
    assert "the image fails: " in again.stdout

    fixed = text.replace("// FIX", "pmem_persist(e, sizeof *e);")
    done = reopened(run_nearfar, tmp_path, fixed)
    assert (done.code, document(done)["states_left"]) == (0, 0), done


def test_what_also_happens_without_a_crash_is_no_finding(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = FIXED.replace(
        "  for (uint64_t v", '  if (j->count >= 3) return puts("full"), 7;\n  for (uint64_t v'
    )
    done = reopened(run_nearfar, tmp_path, text)
    found = document(done)
    assert (done.code, found["verdict"]) == (0, "clean"), done
    assert found["reopening"] == {"inspected": False, "started": True, "expected": [7]}
    assert (
        "on the pool that it left, the program ends with 7 (full): this is expected" in done.stderr
    )


def test_a_program_that_dies_without_a_crash_checks_no_image(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    """Its death on an image would prove nothing."""
    text = FIXED.replace("  for (uint64_t v", "  if (j->count >= 3) abort();\n  for (uint64_t v")
    done = reopened(run_nearfar, tmp_path, "#include <stdlib.h>\n" + text, json="no.json")
    done.assert_refused(3, "killed by signal 6 (Aborted): it is not started on images")


def test_an_image_is_replayed_from_any_directory(
    run_nearfar: RunNearfar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = reopened(run_nearfar, tmp_path, verifying(BUGGY, "exit(5)"))
    image = tmp_path / document(done)["findings"][0]["image"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert run_nearfar("crash", "replay", str(image)).code == 1
    image.write_bytes(image.read_bytes()[:100])
    run_nearfar("crash", "replay", str(image)).assert_refused(2, "has 100 bytes, and not the ")


def test_a_program_that_cannot_be_started_on_images_is_refused(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    anew = FIXED.replace("  struct journal *j", "  remove(argv[1]);\n  struct journal *j")
    done = reopened(run_nearfar, tmp_path, anew, json="no.json")
    done.assert_refused(
        3, "the program removes, renames or replaces it: it is not started on images"
    )
    fixed_path = FIXED.replace("argv[argc - 1]", '"pool.other"')
    done = reopened(run_nearfar, tmp_path, fixed_path, json="no.json")
    done.assert_refused(2, "no argument of the program names its pool")


def test_the_pool_is_found_in_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pool = tmp_path / "pool"
    pool.touch()
    for word, expected in (
        ("pool", IMAGE),
        (f"--pool={pool}", f"--pool={IMAGE}"),
        ("file:./pool", f"file:{IMAGE}"),
    ):
        assert command_on_image(["program", "7", word], pool) == ["program", "7", expected]
    assert command_on_image(["program", "poo", "pool2"], pool) is None
    pool.unlink()
    assert command_on_image(["program", "pool"], pool) == ["program", IMAGE]


#: Makes a pool, and changes it; with DAMAGE, its signature is wrong for a moment.
POOL = """
#include <libpmemobj.h>
#include <stdint.h>
#include <stdio.h>

int main(int argc, char **argv) {
  PMEMobjpool *pool = pmemobj_create(argv[argc - 1], "numbers", PMEMOBJ_MIN_POOL, 0600);
  if (pool == NULL) pool = pmemobj_open(argv[argc - 1], "numbers");
  if (pool == NULL) return puts(pmemobj_errormsg()), 1;
  PMEMoid *root = pmemobj_direct(pmemobj_root(pool, 4 * sizeof(PMEMoid)));
  if (pmemobj_alloc(pool, &root[0], 200, 1, NULL, NULL) != 0) return 2;
#if DAMAGE
  uint64_t *header = (uint64_t *)pool;
  uint64_t before = *header;
  *header = ~before;
  pmemobj_persist(pool, header, 8);
  *header = before;
  pmemobj_persist(pool, header, 8);
#endif
  pmemobj_free(&root[0]);
  pmemobj_close(pool);
  return 0;
}
"""


@pytest.mark.parametrize("damage", [0, 1])
def test_a_pool_that_the_program_creates_is_inspected(
    damage: int, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = POOL.replace("#if DAMAGE", f"#if {damage}")
    done = reopened(run_nearfar, tmp_path, text, "--budget", "150", library="-lpmemobj")
    found = document(done)
    assert found["reopening"] == {"inspected": True, "started": True, "expected": []}, found
    assert (found["warnings"], found["violations"] > 0) == ([], damage == 1), found["findings"]
    if damage:
        assert {finding["failure"] for finding in found["findings"]} == {"damaged"}
        line = 1 + text[: text.index("= ~before")].count("\n")
        assert found["findings"][0]["store"].endswith(f":{line}")


def test_a_program_reads_its_input_again(tmp_path: Path) -> None:
    text = FIXED.replace("int main", "#include <stdlib.h>\nint main").replace(
        "  for (uint64_t v", "  if (getchar() != 'x') abort();\n  for (uint64_t v"
    )
    program = compile_c(tmp_path, "journal", text, "-lpmem")
    (tmp_path / "input").write_text("x")
    command = [
        sys.executable,
        "-m",
        "nearfar.cli.app",
        *("crash", "run", "--", str(program), "pool"),
    ]
    with (tmp_path / "input").open() as given:
        done = subprocess.run(command, cwd=tmp_path, stdin=given, capture_output=True, text=True)
    assert done.returncode == 0, done
    assert done.stdout.splitlines()[1].startswith("no violation; a program that does not verify")
    assert "`nearfar crash lint` lists stores that are never flushed" in done.stdout


def test_a_pool_of_our_own_is_opened_by_its_program(
    shm: Path,
    run_nearfar: RunNearfar,
) -> None:
    program = shm / "steps.py"
    program.write_text(STEPS.replace("STEPS", "4").replace("KEY", "(lambda n: n)"))
    pool = shm / "pool"
    command = [sys.executable, str(program), "WordMap"]
    subprocess.run([*command, "make", pool], check=True)
    done = run_nearfar(
        "crash", "run", "--budget", "12", "--json", "-", "--", *command, "fill", str(pool)
    )
    found = document(done)
    assert (found["violations"], found["states"]) == (0, 12), found


def test_a_program_without_a_pool_is_refused_without_a_checker(run_nearfar: RunNearfar) -> None:
    run_nearfar("crash", "run", "--", "true").assert_refused(2, "mapped no file to be recorded")


@pytest.fixture(scope="module")
def ended_early(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ended")
    return compile_c(
        folder, "ended_early", (PROGRAMS / "ended_early.c").read_text(), "-O3", "-lpmem"
    )


def test_the_addresses_of_one_line_are_one_finding(
    ended_early: Path, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    pool = tmp_path / "pool"
    flags = ["--json", "-", "--images", str(tmp_path / "images")]
    done = run_nearfar("crash", "run", *flags, "--", str(ended_early), str(pool), "forget")
    found = document(done)
    assert [one["missing"] for one in found["findings"]] == ["flush"], done
    assert found["violations"] == found["findings"][0]["violations"] > 1
    kept = (tmp_path / "images").glob("*.image")
    assert [str(path) for path in kept] == [found["findings"][0]["image"]]


def test_a_program_that_ends_early_is_judged_by_what_a_fence_has_passed(
    ended_early: Path, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    pool = str(tmp_path / "pool")
    done = run_nearfar("crash", "lint", "--json", "-", "--", str(ended_early), pool, "kill")
    assert (done.code, document(done)["findings"]) == (3, []), done
    assert "ended by SIGTERM" in done.stderr


def test_a_program_that_fails_on_each_pool_cannot_check_images(
    ended_early: Path, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    pool = str(tmp_path / "pool")
    done = run_nearfar("crash", "run", "--", str(ended_early), pool, "abort")
    assert done.code == 3
    assert "the program was killed by signal 6" in done.stderr
    assert "open that pool in its place and end with 0, or give a --checker" in done.stderr


CODES = """#include <libpmem.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **arguments) {
  const char *path = arguments[count - 1];
  int is_new = access(path, F_OK) != 0;
  volatile long *pool = pmem_map_file(path, 4096, PMEM_FILE_CREATE, 0600, 0, 0);
  if (is_new) {
    pool[0] = 77;
    pmem_persist((void *)pool, 8);
  }
  if (pool[0] != 77) return puts("no journal"), 1;
  for (long i = 1; i <= pool[8]; ++i)
    if (pool[8 * i + 16] != i) return puts("torn"), CODE;
  for (long i = pool[8] + 1; i < 4; ++i) {
    pool[8] = i; /* before the entry */
    pmem_persist((void *)(pool + 8), 8);
    pool[8 * i + 16] = i;
    pmem_persist((void *)(pool + 8 * i + 16), 8);
  }
  return 0;
}
"""


@pytest.mark.parametrize(("code", "verdict"), [("1", "inconclusive"), ("2", "violation")])
def test_an_expected_code_with_other_words_proves_nothing(
    code: str, verdict: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    """A new pool has no journal, which the program reports with the code of a torn entry, too."""
    done = reopened(run_nearfar, tmp_path, CODES.replace("CODE", code))
    found = document(done)
    assert (found["verdict"], done.code) == (verdict, 3 if code == "1" else 1)
    doubts = [warning for warning in found["warnings"] if "said something else" in warning]
    assert len(doubts) == (code == "1")
    assert all(doubt.endswith("the first of them: torn") for doubt in doubts)
