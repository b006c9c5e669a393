"""Programs that generate code, as just-in-time compilers do, have many call sites in no file."""

from __future__ import annotations

import json
from pathlib import Path

from compiling import compile_c
from conftest import RunNearfar
from small_host import write_small_host
from tracing import needs_emulator

pytestmark = needs_emulator

SITES = 1000
#: Seconds for a run and for its report, on a busy machine, too. A report whose time is quadratic
#: in the sites takes longer.
LIMIT_S = 300
#: Writes, runs and removes code in short-lived mappings. Each piece of code calls malloc() once, at
#: an address of its own.
GENERATING = f"""#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
enum {{ SITES = {SITES}, REGION = 1 << 16, BLOCK = 1 << 12 }};
typedef char* generated(size_t, void* (*)(size_t));
// push %rbp; mov %rsp,%rbp; call *%rsi; pop %rbp; ret
static const char code[] = "\\x55\\x48\\x89\\xe5\\xff\\xd6\\x5d\\xc3";
int main(void) {{
  for (int i = 0; i < SITES; ++i) {{
    char* region = mmap(0, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (region == MAP_FAILED) return 1;
    char* at = region + 40 * i;
    memcpy(at, code, sizeof code);
    mprotect(region, REGION, PROT_READ | PROT_EXEC);
    volatile char* block = ((generated*)at)(BLOCK, malloc);
    for (int j = 0; j < BLOCK; j += 64) block[j] = (char)i;
    if (i % 2) free((void*)block);
    munmap(region, REGION);
  }}
  return 0;
}}
"""


def test_a_program_that_generates_code_gets_advice_and_a_report(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "generating", GENERATING)
    host = write_small_host(tmp_path / "small.toml")
    flags = ("--emulate", "--near", "ddr4", "--host", str(host), "--json", "found.json")
    done = run_nearfar("advise", *flags, "--", str(program), timeout=LIMIT_S)
    assert done.code == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    heap = [site for site in found["sites"] if site["kind"] == "heap"]
    assert [site["allocations"] for site in heap].count(1) >= SITES
    reported = run_nearfar("report", found["record"], timeout=LIMIT_S)
    assert reported.code == 0, reported.stderr
