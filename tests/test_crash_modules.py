"""`crash lint` and `crash run` on code wherever it lies, ends, and stores that change nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from conftest import RunNearfar
from crashing import document, linted, needs_libpmem
from nearfar.verify.findings import Exploration

pytestmark = needs_libpmem

STORING = """#include <stdlib.h>
void store(char *at) { at[5] = 4; }
"""
CALLING = """#include <libpmem.h>
void store(char *at);
int main(int count, char **arguments) {
  store(pmem_map_file(arguments[count - 1], 4096, PMEM_FILE_CREATE, 0600, 0, 0));
  return 0;
}
"""


@pytest.mark.parametrize("name", ["libstore.so", "libpmem_store.so", "libpmemkv.so.1"])
def test_only_pmdk_s_own_libraries_are_not_judged(
    name: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    (tmp_path / "store.c").write_text(STORING)
    (tmp_path / "main.c").write_text(CALLING)
    library = [f"-Wl,-rpath,{tmp_path}", name, "-lpmem"]
    build = ["gcc", "-g", "-O1"]
    subprocess.run([*build, "-fPIC", "-shared", "store.c", "-o", name], cwd=tmp_path, check=True)
    subprocess.run([*build, "main.c", *library, "-o", "libpmem_user"], cwd=tmp_path, check=True)
    found = linted(run_nearfar, str(tmp_path / "libpmem_user"), str(tmp_path / "pool"))
    (finding,) = found["findings"]
    assert finding["rule"] == "unflushed"
    assert finding["place"].endswith("store.c:2")


LAMBDA = """#include <libpmem.h>
#include <atomic>
#include <cstdint>
struct Counters { std::atomic<std::uint64_t> first; std::uint64_t apart[7]; std::uint64_t last; };
static inline void add(Counters *at) {
  at->first.fetch_add(1); // STORED
}
int main(int count, char **arguments) {
  void *pool = pmem_map_file(arguments[count - 1], 4096, PMEM_FILE_CREATE, 0600, 0, 0);
  auto *at = static_cast<Counters *>(pool);
  auto work = [&](int times) __attribute__((noinline)) {
    for (int i = 0; i < times; ++i)
      add(at); // INLINED
    at->last = std::uint64_t(times);
    pmem_persist(&at->last, 8);
  };
  work(count);
  work(count + 2);
}
"""


def test_a_store_in_a_lambda_is_at_its_own_line(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    source, program = tmp_path / "work.cpp", tmp_path / "work"
    source.write_text(LAMBDA)
    subprocess.run(["g++", "-g", "-O2", source, "-o", program, "-lpmem"], check=True)
    (finding,) = linted(run_nearfar, str(program), str(tmp_path / "pool"))["findings"]
    lines = LAMBDA.splitlines()
    at = {
        mark: next(n for n, line in enumerate(lines, 1) if mark in line)
        for mark in ("STORED", "INLINED")
    }
    assert finding["place"] == f"{source}:{at['STORED']}"
    assert finding["inlined_into"] == [f"{source}:{at['INLINED']}"]


QUICK = """#include <libpmem.h>
#include <stdlib.h>
static char *pool;
static void late(void) { pool[64] = 1; /* LATE */ }
int main(int count, char **arguments) {
  pool = pmem_map_file(arguments[count - 1], 4096, PMEM_FILE_CREATE, 0600, 0, 0);
  at_quick_exit(late);
  pool[0] = 9; /* EARLY */
  quick_exit(0);
}
"""


def test_a_program_that_ends_by_quick_exit_is_judged_to_its_end(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    source, program = tmp_path / "quick.c", tmp_path / "quick"
    source.write_text(QUICK)
    subprocess.run(["gcc", "-g", "-O1", source, "-o", program, "-lpmem"], check=True)
    done = run_nearfar("crash", "lint", "--json", "-", "--", str(program), str(tmp_path / "pool"))
    found = document(done)
    assert (found["verdict"], done.code, found["warnings"]) == ("violation", 1, [])
    lines = [n for n, line in enumerate(QUICK.splitlines(), 1) if "LATE" in line or "EARLY" in line]
    places = sorted(int(one["place"].rpartition(":")[2]) for one in found["findings"])
    assert places == lines


def test_images_of_stores_by_libraries_alone_are_not_said_to_be_covered() -> None:
    """Which of their stores were tried is not counted."""
    explored = Exploration(states=20, states_left=1e11, points=498)
    assert explored.verdict == "inconclusive"
    assert Exploration(states=20, states_left=0, points=4).verdict == "clean"


TOUCHING = """#include <libpmem.h>
int main(int count, char **arguments) {
  volatile char *pool = pmem_map_file(arguments[count - 1], 65536, PMEM_FILE_CREATE, 0600, 0, 0);
  for (int i = 0; i < 65536; i += 4096)
    pool[i] = pool[i]; /* TOUCHED */
  pool[64] = 1;
  pmem_persist((void *)(pool + 64), 1);
  return 0;
}
"""


def test_a_store_that_changes_nothing_is_no_error(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    source, program = tmp_path / "touching.c", tmp_path / "touching"
    source.write_text(TOUCHING)
    subprocess.run(["gcc", "-g", "-O1", source, "-o", program, "-lpmem"], check=True)
    done = run_nearfar("crash", "lint", "--json", "-", "--", str(program), str(tmp_path / "pool"))
    (finding,) = document(done)["findings"]
    assert (finding["rule"], finding["level"], finding["times"]) == ("unchanged", "note", 16)
    line = next(n for n, line in enumerate(TOUCHING.splitlines(), 1) if "TOUCHED" in line)
    assert finding["place"] == f"{source}:{line}"
    assert done.code == 0
