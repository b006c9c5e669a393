"""Stores of libraries are shown with the call of the program that led to them."""

from __future__ import annotations

import json
from pathlib import Path

from compiling import compile_c
from conftest import RunNearfar
from crashing import crash_run, document, needs_explorer, needs_libpmem

pytestmark = [needs_explorer, needs_libpmem]

#: Two objects that the checker wants to be there together, although nothing makes them atomic.
PAIR = """
#include <libpmemobj.h>
#include <stdio.h>

int main(int argc, char **argv) {
  PMEMobjpool *pool = pmemobj_create(argv[argc - 1], "pair", PMEMOBJ_MIN_POOL, 0600);
  if (pool == NULL) pool = pmemobj_open(argv[argc - 1], "pair");
  if (pool == NULL) return 2;
  PMEMoid *root = pmemobj_direct(pmemobj_root(pool, 2 * sizeof(PMEMoid)));
#ifdef CHECK
  return root[0].off != 0 && root[1].off == 0;
#else
  pmemobj_alloc(pool, &root[0], 200, 1, NULL, NULL); /* CALL */
  pmemobj_alloc(pool, &root[1], 200, 1, NULL, NULL); /* CALL */
  pmemobj_close(pool);
  return 0;
#endif
}
"""


def test_a_store_of_a_library_has_its_caller(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    checker = compile_c(tmp_path, "check", PAIR, "-DCHECK", "-lpmemobj")
    program = compile_c(tmp_path, "pair", PAIR, "-lpmemobj")
    flags = ("--budget", "60", "--sarif", "found.sarif")
    done = crash_run(run_nearfar, program, checker, *flags)
    findings = document(done)["findings"]
    assert done.code == 1, done
    calls = {
        f"pair.c:{number}" for number, line in enumerate(PAIR.splitlines(), 1) if "CALL" in line
    }
    assert {Path(finding["store_caller"]).name for finding in findings} <= calls, findings
    assert all("libpmemobj" in finding["store"] for finding in findings)
    assert len({(each["store_caller"], each["missing"]) for each in findings}) == len(findings)
    results = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]["results"]
    for result in results:
        (location,) = result["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"].endswith("pair.c")
    shown = run_nearfar(
        *("crash", "run", "--budget", "60", "--checker", str(checker), "--"),
        *(str(program), str(tmp_path / "pool2")),
    )
    assert ", called from pair.c:" in shown.stdout
