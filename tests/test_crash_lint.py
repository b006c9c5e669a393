"""``nearfar crash lint``: findings without a checker and without images."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compiling import compile_c
from conftest import RunNearfar
from crashing import INCLUDE, PROGRAMS, document, linted, needs_libpmem, needs_libpmemobj
from nearfar.report.terminal.lint import findings
from nearfar.verify.lint import LintResult
from nearfar.verify.recorder import compile_flags, link_flags

pytestmark = needs_libpmem

TEXT = (PROGRAMS / "lint.c").read_text()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return compile_c(tmp_path, "lint", TEXT, "-g", "-lpmem")


def sites(text: str) -> dict[str, int]:
    """The line of each rule that a program breaks."""
    marked = (re.search(r"SITE (\w+)", line) for line in text.splitlines())
    return {match[1]: number for number, match in enumerate(marked, 1) if match}


def test_each_rule_is_found_at_its_line(
    program: Path, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    pool = str(tmp_path / "pool")
    done = run_nearfar("crash", "lint", "--json", "-", "--", str(program), pool, "0")
    assert done.code == 1, done.stderr
    found = document(done)
    assert found["verdict"] == "violation"
    assert found["errors"] == 2
    places = {each["rule"]: each["place"] for each in found["findings"]}
    assert {rule: place.rpartition(":")[2] for rule, place in places.items()} == {
        rule: str(line) for rule, line in sites(TEXT).items()
    }
    assert all("lint.c:" in place for place in places.values())


def test_text_and_sarif(program: Path, run_nearfar: RunNearfar, tmp_path: Path) -> None:
    pool = str(tmp_path / "pool")
    arguments = ("--sarif", "found.sarif", "--", str(program), pool, "0")
    done = run_nearfar("crash", "lint", *arguments)
    line = sites(TEXT)["unflushed"]
    assert f"lint.c:{line}: error: this store is never flushed [unflushed]" in done.stdout
    assert "2 errors, 2 notes in " in done.stdout
    run = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]
    assert [result["level"] for result in run["results"]] == ["error", "error", "note", "note"]
    regions = [
        result["locations"][0]["physicalLocation"]["region"]["startLine"]
        for result in run["results"]
    ]
    assert sorted(regions) == sorted(sites(TEXT).values())


def test_a_program_that_fails_is_inconclusive_without_an_error(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = "\n".join(line for line in TEXT.splitlines() if not re.search("SITE unf", line))
    program = compile_c(tmp_path, "fixed", text, "-g", "-lpmem")
    for code, expected, verdict in (("0", 0, "clean"), ("7", 3, "inconclusive")):
        pool = str(tmp_path / f"pool{code}")
        done = run_nearfar("crash", "lint", "--json", "-", "--", str(program), pool, code)
        assert done.code == expected
        assert document(done)["verdict"] == verdict
    assert "ended with 7" in done.stderr


def test_a_program_without_a_pool_is_refused(run_nearfar: RunNearfar) -> None:
    run_nearfar("crash", "lint", "--", "true").assert_refused(2, "mapped no file")
    run_nearfar("crash", "lint", "--", "no-such-program").assert_refused(2, "cannot run no-such")


@pytest.mark.parametrize("wrapper", ["env CHILD=1 {}", "sh -c '{}; exit $?'"])
def test_a_program_that_another_one_starts_is_recorded(
    wrapper: str, program: Path, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    command = shlex.split(wrapper.format(f"{program} {tmp_path / 'pool'} 0"))
    done = run_nearfar("crash", "lint", "--json", "-", "--", *command)
    assert {each["rule"] for each in document(done)["findings"]} == set(sites(TEXT))


def test_a_second_process_with_a_pool_is_not_recorded(
    program: Path, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    both = "; ".join(f"{program} {tmp_path / pool} 0" for pool in ("first", "second"))
    done = run_nearfar("crash", "lint", "--json", "-", "--", "sh", "-c", both)
    assert {each["times"] for each in document(done)["findings"]} == {1}
    assert "a second program that maps a pool is not recorded" in done.stderr


OBJECT = """
#include <libpmemobj.h>
int main(int argc, char** argv) {
  PMEMobjpool* pool = pmemobj_create(argv[argc - 1], "", PMEMOBJ_MIN_POOL, 0600);
  volatile long* words = pmemobj_direct(pmemobj_root(pool, 128));
  words[0] = 1;
  pmemobj_persist(pool, (long*)words, 8);
  pmemobj_persist(pool, (long*)words, 8); // SITE needless_flush
  words[0] = 1;
  pmemobj_persist(pool, (long*)words, 8);
  words[8] = 0; // SITE unchanged
  pmemobj_close(pool);
  return 0;
}
"""


@needs_libpmemobj
def test_flushes_by_libpmemobj_and_stores_that_change_nothing(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    """The flush of a value that was there is not needless; the store without one is a note."""
    program = compile_c(tmp_path, "object", OBJECT, "-g", "-lpmemobj")
    pool = str(tmp_path / "pool")
    found = linted(run_nearfar, str(program), pool)
    assert {each["rule"]: int(each["place"].rpartition(":")[2]) for each in found["findings"]} == (
        sites(OBJECT)
    )
    assert {each["times"] for each in found["findings"]} == {1}


def transaction(folder: Path, bug: int, run_nearfar: RunNearfar) -> dict[str, Any]:
    """The result for a transaction of libpmemobj in a library."""
    text = (PROGRAMS / "opened_pair.c").read_text()
    host = compile_c(folder, f"host{bug}", text, "-g", "-DHOST")
    library = folder / f"pair{bug}.so"
    source = PROGRAMS / "opened_pair.c"
    flags = ["-shared", "-fPIC", "-g", f"-DBUG={bug}", INCLUDE, "-lpmemobj"]
    subprocess.run(["gcc", source, *flags, "-o", library], check=True)
    pool = folder / f"pool{bug}"
    subprocess.run([host, library, "make", pool], check=True)
    command = ("--json", "-", "--", str(host), str(library), "run", str(pool))
    return document(run_nearfar("crash", "lint", *command))


@needs_libpmemobj
def test_a_store_that_a_transaction_does_not_log(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    assert transaction(tmp_path, 0, run_nearfar)["findings"] == []
    found = transaction(tmp_path, 1, run_nearfar)["findings"]
    assert [each["rule"] for each in found] == ["unlogged"]
    line = next(
        number
        for number, text in enumerate((PROGRAMS / "opened_pair.c").read_text().splitlines(), 1)
        if "SITE 1" in text
    )
    assert found[0]["place"].endswith(f"opened_pair.c:{line}")


INTRINSIC = """
#include <fcntl.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <unistd.h>
static inline void put(long long* to) {
  _mm_stream_si64(to, 1); /* SITE unfenced */
}
int main(int count, char** arguments) {
  int fd = open(arguments[count - 1], O_RDWR | O_CREAT, 0600);
  if (ftruncate(fd, 4096)) return 2;
  long long* pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  put(pool); /* SITE inlined */
  return 0;
}
"""


def test_a_place_in_an_intrinsic_is_that_of_the_program(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "stream", INTRINSIC, "-g", "-O1")
    pool = str(tmp_path / "pool")
    found = linted(run_nearfar, str(program), pool)
    (finding,) = found["findings"]
    lines = sites(INTRINSIC)
    assert finding["rule"] == "unfenced"
    assert finding["place"].endswith(f"stream.c:{lines['unfenced']}")
    assert [place.rpartition(":")[2] for place in finding["inlined_into"]] == [
        str(lines["inlined"])
    ]


FORKING = """
#include <libpmem.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char** arguments) {
  uint64_t* pool = pmem_map_file(arguments[1], 4096, PMEM_FILE_CREATE, 0600, NULL, NULL);
  pool[0] = 1;
  pmem_persist(pool, 8);
  if (fork() == 0) {
    CHILD
  }
  wait(NULL);
  pool[256] = 2;
  pmem_persist(pool + 256, 8);
  pool[320] = 3; /* SITE unflushed */
  return 0;
}
"""


@pytest.mark.parametrize(
    "child", ["_exit(0);", "exit(0);", "pool[64] = 1; pmem_persist(pool + 64, 8); exit(0);"]
)
def test_a_forked_child_leaves_the_log_to_its_parent(
    child: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = FORKING.replace("CHILD", child)
    program = compile_c(tmp_path, "forking", text, "-g", "-O1", "-lpmem")
    pool = str(tmp_path / "pool")
    done = run_nearfar("crash", "lint", "--json", "-", "--", str(program), pool)
    found = document(done)
    (finding,) = found["findings"]
    line = sites(text)["unflushed"]
    assert (finding["rule"], finding["times"]) == ("unflushed", 1)
    assert finding["place"].endswith(f"forking.c:{line}")
    stored = "a process that" in " ".join(found["warnings"])
    assert stored == ("pool" in child)
    assert found["verdict"] == "violation"


DAEMON = """
#include <fcntl.h>
#include <libpmem.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char** arguments) {
  int fd = open(arguments[count - 1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) return 1;
  char* pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  pool[0] = 1;
  pmem_persist(pool, 1);
  if (fork() != 0) _exit(0);
  pool[64] = 2;
  return 0;
}
"""


@pytest.mark.parametrize("verb", ["lint", "run"])
def test_what_a_child_stores_after_its_parent_makes_the_result_inconclusive(
    verb: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "daemon", DAEMON, "-g", "-lpmem")
    done = run_nearfar("crash", verb, "--json", "-", "--", str(program), str(tmp_path / "pool"))
    found = document(done)
    assert (done.code, found["verdict"]) == (3, "inconclusive"), done
    assert "forked stored to the pool: its stores are not judged" in found["warnings"][-1]


CHANGED_MAPPINGS = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char** arguments) {
  int fd = open(arguments[count - 1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 8192) != 0) return 1;
  char* pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  pool[0] = 1;
  msync(pool, 4096, MS_SYNC);
  pool = mremap(pool, 4096, 8192, MREMAP_MAYMOVE);
  pool[4096] = 1; /* SITE moved */
  mprotect(pool, 8192, PROT_READ);
  mprotect(pool, 8192, PROT_READ | PROT_WRITE);
  pool[64] = 1; /* SITE protected */
  if (GROWS && ftruncate(fd, 16384) != 0) return 1;
  return 0;
}
"""


def test_mappings_that_the_program_changes_are_recorded(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "changed", CHANGED_MAPPINGS, "-g", "-DGROWS=0")
    done = run_nearfar("crash", "lint", "--json", "-", "--", str(program), str(tmp_path / "pool"))
    found = document(done)
    lines = sorted(int(finding["place"].rpartition(":")[2]) for finding in found["findings"])
    assert lines == sorted(sites(CHANGED_MAPPINGS).values())
    assert found["warnings"] == []


def test_a_pool_that_grows_makes_the_result_inconclusive(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "grown", CHANGED_MAPPINGS, "-g", "-DGROWS=1")
    pool = str(tmp_path / "pool")
    done = run_nearfar("crash", "lint", "--json", "-", "--", str(program), pool)
    assert "the pool has grown since it was mapped first" in document(done)["warnings"][0]
    (tmp_path / "pool").unlink()
    run_nearfar("crash", "run", "--", str(program), pool).assert_refused(
        2, "the program changed the size of its image from 8192 to 16384 bytes"
    )


CALLS = """
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <libpmem.h>
static uint64_t* map(const char* path) {
  int fd = open(path, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) exit(1);
  return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}
int main(int count, char** arguments) {
  if (LOCKS) map("lock")[0] = 1;
  uint64_t* pool = map(getenv("POOL") ? getenv("POOL") : arguments[1]);
  pool[0] = 7;
  pmem_persist(pool, 8);
  uint64_t expected = 9;
  __atomic_compare_exchange_n(pool, &expected, 3, 0, 5, 5);
  if (LOCKS) return 0;
  pool[16] = 1; /* SITE unsynced */
  msync(pool, 4096, MS_ASYNC);
  int file = open("/bin/sh", O_RDONLY);
  if (read(file, pool + 64, 64) != 64) return 2; /* SITE read */
  return 0;
}
"""


@pytest.mark.parametrize("recorder", ["preload", "instrumented"])
def test_calls_and_exchanges_are_stores_where_they_store(
    recorder: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    flags = ("-g", "-O1", "-DLOCKS=0", "-lpmem")
    if recorder == "instrumented":
        part = compile_c(tmp_path, "calls.o", CALLS, *flags, *compile_flags().split(), "-c")
        program = tmp_path / "calls"
        command = ["gcc", str(part), "-o", str(program), *link_flags().split(), "-lpmem"]
        subprocess.run(command, check=True)
    else:
        program = compile_c(tmp_path, "calls", CALLS, *flags)
    asked = ("--recorder", recorder, "--json", "-", "--", str(program), str(tmp_path / "pool"))
    found = document(run_nearfar("crash", "lint", *asked))
    lines = sorted(int(finding["place"].rpartition(":")[2]) for finding in found["findings"])
    assert lines == sorted(sites(CALLS).values())
    assert found["warnings"] == []


def test_the_pool_can_be_named(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compile_c(tmp_path, "calls", CALLS, "-g", "-DLOCKS=1", "-lpmem")
    pool = str(tmp_path / "pool")
    first = run_nearfar("crash", "lint", "--json", "-", "--", str(program), pool)
    assert "also maps" in document(first)["warnings"][0]
    named = run_nearfar("crash", "lint", "--pool", pool, "--json", "-", "--", str(program), pool)
    found = document(named)
    assert (found["verdict"], found["warnings"]) == ("clean", [])
    both = run_nearfar("crash", "lint", "--pool", pool, "--heap", "1MiB", "--", str(program), pool)
    both.assert_refused(2, "--heap and --pool exclude each other")
    heap = run_nearfar("crash", "lint", "--heap", "1MiB", "--", str(program), pool)
    assert "--heap has no effect" in heap.stderr


def test_a_program_that_opens_another_file_than_the_image_is_refused(
    run_nearfar: RunNearfar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = compile_c(tmp_path, "calls", CALLS, "-g", "-DLOCKS=0", "-lpmem")
    pool = str(tmp_path / "pool")
    monkeypatch.setenv("POOL", pool)
    done = run_nearfar("crash", "run", "--", str(program), pool)
    done.assert_refused(
        3, "the program ended with 0 and did not open it: it is not started on images"
    )


HUGE = """
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char** arguments) {
  long bytes = 256L << 30;
  int fd = open(arguments[count - 1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, bytes) != 0) return 1;
  char* pool = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (pool == MAP_FAILED) return 1;
  pool[0] = 1;
  return 0;
}
"""


def test_a_pool_that_cannot_be_copied_is_refused(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compile_c(tmp_path, "huge", HUGE)
    for verb in ("lint", "run"):
        done = run_nearfar("crash", verb, "--", str(program), str(tmp_path / f"pool-{verb}"))
        assert done.code == 2, done
        assert "the pool cannot be recorded: the log is incomplete (no memory" in done.stderr


SYNCED = """
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char** arguments) {
  int fd = open(arguments[count - 1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) return 1;
  char* pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  for (int i = 4; i < 1024; ++i) close(i); /* as daemons do */
  pool[0] = 1;
  fsync(fd);
  pool[64] = 1;
  fdatasync(fd);
  pool[128] = 1; /* SITE unflushed */
  fsync(1);
  return 0;
}
"""


def test_fsync_makes_the_stores_to_its_file_durable(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "synced", SYNCED, "-g")
    done = run_nearfar("crash", "lint", "--json", "-", "--", str(program), str(tmp_path / "pool"))
    found = document(done)
    assert found["warnings"] == []
    (finding,) = found["findings"]
    assert finding["rule"] == "unflushed"
    assert finding["place"].endswith(f"synced.c:{sites(SYNCED)['unflushed']}")


IN_LIBRARY = """
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char** arguments) {
  int fd = open(arguments[count - 1], O_RDWR | O_CREAT, 0600);
  if (ftruncate(fd, 4096)) return 2;
  char* pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  snprintf(pool, 64, "entry %d", count); /* SITE stored */
  return 0;
}
"""


def test_a_store_in_a_library_is_at_the_line_that_calls_it(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "printed", IN_LIBRARY, "-g", "-O1")
    pool = str(tmp_path / "pool")
    found = linted(run_nearfar, str(program), pool)["findings"]
    line = sites(IN_LIBRARY)["stored"]
    assert found
    for finding in found:
        assert finding["rule"] == "unflushed"
        assert finding["place"].endswith(f"printed.c:{line}")
        assert "libc" in finding["library"]
        assert f"(in {finding['library']})" in finding["message"]


def test_what_was_found_before_a_program_was_killed_is_kept(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = TEXT.replace("return atoi(arguments[2]);", "raise(SIGKILL);")
    program = compile_c(
        tmp_path,
        "killed",
        text.replace("#include", "#include <signal.h>\n#include", 1),
        "-g",
        "-lpmem",
    )
    done = run_nearfar(
        "crash", "lint", "--json", "-", "--", str(program), str(tmp_path / "pool"), "0"
    )
    assert done.code == 1
    rules = {finding["rule"] for finding in document(done)["findings"]}
    assert rules == {"unflushed", "needless_flush", "repeated_flush"}  # a fence could follow
    assert "was ended by SIGKILL" in done.stderr


OBJECTS = """
#include <libpmemobj.h>
#include <string.h>
POBJ_LAYOUT_BEGIN(objects);
POBJ_LAYOUT_ROOT(objects, struct root);
POBJ_LAYOUT_END(objects);
struct root { PMEMoid object; long count, more[2]; };
static long* of(PMEMoid object) { return pmemobj_direct(object); }
int main(int count, char** arguments) {
  PMEMobjpool* pool = pmemobj_create(arguments[count - 1], "objects", PMEMOBJ_MIN_POOL, 0600);
  if (pool == NULL) return 2;
  struct root* root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
  for (int i = 0; i < 8; ++i) { /* memory is given out again: no finding */
    pmemobj_alloc(pool, &root->object, 64 + 64 * (i % 2), 1, NULL, NULL);
    *of(root->object) = i;
    pmemobj_persist(pool, of(root->object), sizeof(long));
    pmemobj_free(&root->object);
  }
  pmemobj_alloc(pool, &root->object, 64, 1, NULL, NULL);
  long* freed = of(root->object);
  if (!strcmp(arguments[1], "freed")) {
    pmemobj_free(&root->object);
    *freed = 7; /* SITE freed_store */
    pmemobj_persist(pool, freed, sizeof *freed);
  } else if (!strcmp(arguments[1], "moved")) {
    TX_BEGIN(pool) {
      pmemobj_tx_add_range_direct(&root->object, sizeof root->object);
      root->object = pmemobj_tx_realloc(root->object, 40000, 1); /* SITE moved */
      *freed = 9; /* SITE moved_store */
    } TX_END
  } else if (!strcmp(arguments[1], "short")) {
    TX_BEGIN(pool) {
      pmemobj_tx_add_range_direct(&root->count, 8);
      char* end = (char*)(&root->count + 1); /* a store to what is logged, and one to what is not */
      *(long*)(end - 4) = 1, *(long*)(end + 4) = 2; /* SITE short_log */
    } TX_END
  } else if (!strcmp(arguments[1], "unended")) {
    if (pmemobj_tx_begin(pool, NULL, TX_PARAM_NONE)) return 3; /* SITE unended */
    pmemobj_tx_add_range_direct(&root->count, sizeof root->count);
    root->count = 1;
    pmemobj_persist(pool, &root->count, sizeof root->count);
  } else {
    TX_BEGIN(pool) {
      pmemobj_tx_free(root->object);
      pmemobj_tx_abort(1);
    } TX_END
    *freed = 8; /* it was not freed */
    pmemobj_persist(pool, freed, sizeof *freed);
  }
  return 0;
}
"""


@needs_libpmemobj
def test_freed_objects_and_transactions_that_do_not_end(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "objects", OBJECTS, "-g", "-lpmemobj")
    lines = sites(OBJECTS)
    kinds = {"freed": ["freed_store"], "unended": ["unended"], "none": [], "short": ["short_log"]}
    for kind, rules in kinds.items():
        pool = str(tmp_path / f"pool-{kind}")
        found = linted(run_nearfar, str(program), kind, pool)
        errors = [each for each in found["findings"] if each["level"] == "error"]
        assert [each["rule"] for each in errors] == rules
        assert all(each["place"].endswith(f"objects.c:{lines[each['rule']]}") for each in errors)
    (moved,) = linted(run_nearfar, str(program), "moved", str(tmp_path / "moved"))["findings"]
    assert moved["rule"] == "freed_store"  # and no log could help
    assert moved["place"].endswith(f"objects.c:{lines['moved_store']}")
    assert moved["other"].endswith(f"objects.c:{lines['moved']}")


def test_a_store_of_another_thread_is_not_given_the_line_of_this_one(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = (PROGRAMS / "shared_page.c").read_text()
    program = compile_c(tmp_path, "shared_page", text, "-g", "-lpmem", "-pthread")
    done = run_nearfar("crash", "lint", "--json", "-", "--", str(program), str(tmp_path / "pool"))
    found = document(done)
    unflushed = [each for each in found["findings"] if each["rule"] == "unflushed"]
    lines = {each["place"].rpartition(":")[2] for each in unflushed}
    # A store to a page that is open for the other thread is seen, its line and its kind are not: it
    # can be a non-temporal one, so that nothing is decided.
    assert lines <= {str(sites(text)["forgotten"]), ""}
    assert lines or found["verdict"] == "inconclusive"


TRANSACTIONS = """
#include <libpmemobj.h>
#include <string.h>
struct root { uint64_t a[8]; uint64_t b[8]; struct pmemvlt once; int value; PMEMoid object; };
static PMEMobjpool* pool;
static int sets(PMEMobjpool* p, void* at, void* cancel) { *(long*)at = 1; return cancel != NULL; }
static int starts(void* at, void* unused) { *(int*)at = 1; return 0; }
int main(int count, char** arguments) {
  const char* what = arguments[1];
  pool = pmemobj_create(arguments[2], "", PMEMOBJ_MIN_POOL, 0600);
  struct root* root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
  if (!strcmp(what, "nested")) { /* the end of the inner transaction does not return */
    for (int i = 0; i < 3; ++i) {
      TX_BEGIN(pool) {
        pmemobj_tx_add_range_direct(root->a, 8);
        root->a[0] = 1;
        TX_BEGIN(pool) { pmemobj_tx_abort(1); } TX_END
      } TX_END
    }
  } else if (!strcmp(what, "after")) {
    TX_BEGIN(pool) {
      pmemobj_tx_add_range_direct(root->a, 8);
      root->a[0] = 1;
    } TX_ONCOMMIT {
      root->b[0] = 1; /* SITE after */
    } TX_END
  } else if (!strcmp(what, "flushed")) {
    TX_BEGIN(pool) {
      root->b[0] = 1; /* SITE flushed */
      pmemobj_persist(pool, root->b, 8);
    } TX_END
  } else if (!strcmp(what, "reserved")) {
    struct pobj_action action;
    PMEMoid object = pmemobj_reserve(pool, &action, 64, 1);
    TX_BEGIN(pool) {
      *(long*)pmemobj_direct(object) = 1;
      pmemobj_persist(pool, pmemobj_direct(object), 8);
      pmemobj_tx_publish(&action, 1);
    } TX_END
  } else if (!strcmp(what, "published")) { /* in one step with what refers to it */
    struct pobj_action actions[2];
    PMEMoid object = pmemobj_reserve(pool, &actions[0], 64, 1);
    pmemobj_set_value(pool, &actions[1], &root->object.off, object.off);
    pmemobj_publish(pool, actions, 2);
    TX_BEGIN(pool) {
      *(long*)pmemobj_direct(object) = 1; /* SITE published */
    } TX_END
  } else if (!strcmp(what, "linked")) { /* by the call that allocates it */
    pmemobj_zalloc(pool, &root->object, 64, 1);
    TX_BEGIN(pool) {
      *(long*)pmemobj_direct(root->object) = 1; /* SITE linked */
    } TX_END
  } else if (!strcmp(what, "lost")) { /* the first object that refers to it is new itself */
    PMEMoid first;
    pmemobj_zalloc(pool, &first, 64, 1);
    PMEMoid* second = pmemobj_direct(first);
    pmemobj_zalloc(pool, second, 64, 1);
    TX_BEGIN(pool) {
      *(long*)pmemobj_direct(*second) = 1;
      pmemobj_persist(pool, pmemobj_direct(*second), 8);
      pmemobj_tx_add_range_direct(&root->object, sizeof first);
      root->object = first;
    } TX_END
  } else if (!strcmp(what, "undone")) { /* what was stored to objects that are not there any more */
    struct pobj_action action;
    TX_BEGIN(pool) {
      memset(pmemobj_direct(pmemobj_tx_alloc(64, 1)), 1, 64);
      pmemobj_tx_abort(1);
    } TX_END
    memset(pmemobj_direct(pmemobj_reserve(pool, &action, 64, 1)), 1, 64);
    pmemobj_cancel(pool, &action, 1);
    memset(pmemobj_direct(pmemobj_reserve(pool, &action, 64, 1)), 1, 64);
    TX_BEGIN(pool) {
      pmemobj_tx_publish(&action, 1);
      pmemobj_tx_abort(1);
    } TX_END
    for (int i = 0; i < 3; ++i) /* in their places */
      pmemobj_alloc(pool, &root->object, 64, 1, NULL, NULL);
  } else if (!strcmp(what, "grown")) {
    pmemobj_alloc(pool, &root->object, 64, 1, NULL, NULL);
    long* before = pmemobj_direct(root->object);
    pmemobj_realloc(pool, &root->object, 4096, 1);
    *before = 1; /* SITE grown */
  } else if (!strcmp(what, "dropped")) {
    struct pobj_action action;
    pmemobj_alloc(pool, &root->object, 64, 1, NULL, NULL);
    long* before = pmemobj_direct(root->object);
    pmemobj_defer_free(pool, root->object, &action);
    pmemobj_publish(pool, &action, 1);
    *before = 1; /* SITE dropped */
  } else if (!strcmp(what, "copied")) {
    pmemobj_memcpy(pool, root->a, what, 8, PMEMOBJ_F_MEM_NOFLUSH); /* SITE copied */
  } else if (!strcmp(what, "volatile")) {
    *(int*)pmemobj_volatile(pool, &root->once, &root->value, sizeof(int), starts, NULL) = 7;
  } else {
    const void* cancel = strcmp(what, "kept") ? pool : NULL;
    pmemobj_alloc(pool, NULL, 64, 1, sets, (void*)cancel);
  }
  pmemobj_close(pool);
  return 0;
}
"""


@needs_libpmemobj
@pytest.mark.parametrize(
    ("what", "rule"),
    [
        ("nested", None),
        ("after", "unflushed"),
        ("flushed", "unlogged_flush"),
        ("reserved", None),
        ("published", "unlogged"),
        ("linked", "unlogged"),
        ("lost", None),
        ("undone", None),
        ("grown", "freed_store"),
        ("dropped", "freed_store"),
        ("copied", "unflushed"),
        ("volatile", None),
        ("cancelled", None),
    ],
)
def test_calls_of_libpmemobj(
    what: str, rule: str | None, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "transactions", TRANSACTIONS, "-g", "-lpmemobj")
    found = linted(run_nearfar, str(program), what, str(tmp_path / "pool"))["findings"]
    assert [each["rule"] for each in found] == ([rule] if rule else [])
    if rule:
        line = sites(TRANSACTIONS)[what]
        assert found[0]["place"].endswith(f"transactions.c:{line}")


@needs_libpmemobj
def test_a_store_of_a_constructor_is_called_from_the_allocation(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "kept", TRANSACTIONS, "-g", "-lpmemobj")
    done = run_nearfar("crash", "lint", "--", str(program), "kept", str(tmp_path / "pool"))
    line = TRANSACTIONS[: TRANSACTIONS.index("pmemobj_alloc(pool, NULL")].count("\n") + 1
    assert re.search(
        rf"kept.c:\d+: error: .*never flushed.*\n  first called from .*:{line}\n", done.stdout
    )


PARTS = {
    "main.c": """
#include <libpmem.h>
#include <stddef.h>
void hidden(long*);
int main(int count, char** arguments) {
  long* pool = pmem_map_file(arguments[count - 1], 65536, PMEM_FILE_CREATE, 0600, NULL, NULL);
  pool[0] = 1;
  pmem_persist(pool, 8);
  hidden(pool + 8);
  pmem_persist(pool + 8, 8);
  return 0;
}
""",
    "hidden.c": "void hidden(long* at) { *at = 1; }\n",
}


@pytest.mark.parametrize("verb", ["lint", "run"])
def test_a_part_that_is_not_compiled_for_the_recorder_makes_the_result_inconclusive(
    verb: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    compiled, linked = (
        run_nearfar("crash", "flags", part).stdout.split() for part in ("compile", "link")
    )
    for name, text in PARTS.items():
        (tmp_path / name).write_text(text)
    whole = ("main.c", "hidden.c")
    for program, instrumented in (("whole", whole), ("part", whole[:1])):
        for name in whole:
            flags = compiled if name in instrumented else ["-g"]
            subprocess.run(["gcc", *flags, "-c", name], cwd=tmp_path, check=True)
        objects = ["main.o", "hidden.o", *linked, "-lpmem"]
        subprocess.run(["gcc", "-o", program, *objects], cwd=tmp_path, check=True)
        command = ["crash", verb, "--recorder", "instrumented", "--json", "-"]
        command += ["--checker", "true"] if verb == "run" else []
        done = run_nearfar(
            *command, "--", str(tmp_path / program), str(tmp_path / program) + ".pool"
        )
        assert (document(done)["verdict"], done.code) == (
            ("clean", 0) if program == "whole" else ("inconclusive", 3)
        )
        assert ("1 word of 4 bytes of the pool was stored unseen" in done.stderr) == (
            program == "part"
        )
        assert document(done)["findings"] == []


def test_a_program_that_is_linked_statically_is_refused(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "static", "int main(void) { return 0; }", "-static")
    run_nearfar("crash", "lint", "--", str(program)).assert_refused(2, "linked statically")


ENDS = """
#include <libpmem.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char** arguments) {
  signal(SIGSEGV, SIG_DFL);
  long* pool = pmem_map_file(arguments[1], 4096, PMEM_FILE_CREATE, 0600, NULL, NULL);
  if (count > 2) pmem_map_file(arguments[2], 4096, PMEM_FILE_CREATE, 0600, NULL, NULL);
  if (vfork() == 0) _exit(0);
  pool[0] = 1; pool[8] = 1; /* SITE unflushed */
  _exit(0);
}
"""


def test_a_program_that_ends_without_destructors(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compile_c(tmp_path, "ends", ENDS, "-g", "-O1", "-lpmem")
    pools = [str(tmp_path / name) for name in ("first", "second")]
    done = run_nearfar("crash", "lint", "--json", "-", "--", str(program), *pools)
    assert done.code == 1
    (finding,) = document(done)["findings"]
    assert (finding["rule"], finding["times"], finding["bytes"]) == ("unflushed", 2, 8)
    assert finding["place"].endswith(f"ends.c:{sites(ENDS)['unflushed']}")
    assert document(done)["warnings"] == [
        f"only {pools[0]} is judged; the program also maps {pools[1]} (see --pool)"
    ]


EACH_AFTER_FILLED = """
import struct, sys
words = struct.unpack("32q", open(sys.argv[1], "rb").read()[:256])
sys.exit(words[16] == 5 and words[8] != 7)
"""


@pytest.mark.parametrize("optimization", ["-O0", "-O1", "-O2"])
def test_functions_of_system_headers_are_at_the_line_that_calls_them(
    optimization: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    source = PROGRAMS / "system_headers.cpp"
    program = tmp_path / "system_headers"
    subprocess.run(["g++", "-g", optimization, source, "-o", program], check=True)
    pool = str(tmp_path / "pool")
    found = linted(run_nearfar, str(program), pool)["findings"]
    lines = source.read_text().splitlines()
    stored = {f"{source}:{n}" for n, line in enumerate(lines, 1) if line.endswith("// STORED")}
    assert {one["place"] for one in found} == stored
    assert not [line for one in found for line in one["inlined_into"] if "/usr/" in line]

    Path(pool).unlink()
    checker = tmp_path / "check.py"
    checker.write_text(EACH_AFTER_FILLED)
    flags = ("--checker", f"{sys.executable} {checker}", "--budget", "60", "--json", "-")
    findings = document(run_nearfar("crash", "run", *flags, "--", str(program), pool))["findings"]
    assert findings
    assert {one["store_caller"] or one["store"] for one in findings} <= stored


def test_paths_of_headers_are_normalized(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    """clang names headers of the C++ library by way of /usr/bin/../lib."""
    header = '# 7 "/usr/bin/../lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/bits/a.h"'
    text = f"""#include <libpmem.h>
{header}
__attribute__((noinline)) static void fill(volatile long *at) {{ *at = 7; }}
# 5 "{tmp_path}/filled.c"
int main(int count, char **arguments) {{
  volatile long *pool = pmem_map_file(arguments[count - 1], 4096, PMEM_FILE_CREATE, 0600, 0, 0);
  fill(pool);
  return 0;
}}
"""
    program = compile_c(tmp_path, "filled", text, "-lpmem")
    pool = str(tmp_path / "pool")
    (finding,) = linted(run_nearfar, str(program), pool)["findings"]
    assert finding["place"] == f"{tmp_path}/filled.c:7"
    assert finding["library"] == "/usr/include/c++/12/bits/a.h:7"


def test_a_violation_that_cannot_be_written_is_no_violation(tmp_path: Path) -> None:
    text = (
        "int main(int n, char **a) { *(long *)pmem_map_file(a[n - 1], 4096, 1, 0600, 0, 0) = 1; }"
    )
    program = compile_c(tmp_path, "stores", "#include <libpmem.h>\n" + text, "-lpmem")
    flags = ("crash", "lint", "--json", "-", "--", str(program), str(tmp_path / "pool"))
    with Path("/dev/full").open("w") as full:
        lost = subprocess.run(
            [sys.executable, "-m", "nearfar.cli.app", *flags],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (lost.returncode, b"cannot write standard output" in lost.stderr) == (3, True)


def test_without_findings_the_next_command_is_named() -> None:
    """It tests what `lint` does not: what a crash leaves of stores whose order is right."""
    said = findings(LintResult(events=1200)).plain
    assert said == (
        "0 errors, 0 notes in 1,200 recorded events; `nearfar crash run` tests what a crash leaves"
    )
