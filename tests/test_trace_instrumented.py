"""Programs that are compiled for tracing, which need no emulator."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from compiling import compile_c
from conftest import RunNearfar
from tracing import USUAL_CACHES, traced

FLOATS = """
#include <stdlib.h>
int main(void) {
  long n = 1 << 18;
  double *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
  for (long i = 0; i < n; ++i) b[i] = i;
  for (long i = 0; i < n; ++i) a[i] = 2.0 * b[i] + 1.0;
  double s = 0;
  for (long i = 0; i < n; ++i) s += a[i];
  free(a);
  return s < 0;
}
"""


# The same, eight numbers at a time.
WIDE = FLOATS.replace(
    "<stdlib.h>", "<stdlib.h>\ntypedef double eight __attribute__((vector_size(64)));"
)
WIDE = WIDE.replace("= malloc(n * sizeof *a)", "= aligned_alloc(64, n * sizeof *a)")
WIDE = WIDE.replace("= malloc(n * sizeof *b)", "= aligned_alloc(64, n * sizeof *b)")
WIDE = WIDE.replace(
    "a[i] = 2.0 * b[i] + 1.0;", "if (i % 8 == 0) *(eight *)&a[i] = 2.0 * *(eight *)&b[i] + 1.0;"
)


def test_an_instrumented_program_is_traced_without_the_emulator(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    flags = shlex.split(run_nearfar("trace", "flags").stdout)
    n = 1 << 18
    for name, text, options, middle in (
        ("plain", FLOATS, [], n),
        ("wide", WIDE, ["-mavx512f"], n // 8),
    ):
        program = compile_c(tmp_path, name, text, *options, *flags)
        if name == "wide" and "avx512f" not in Path("/proc/cpuinfo").read_text():
            continue  # it was compiled; this processor cannot run it
        found = traced(
            run_nearfar,
            tmp_path / f"{name}.trace",
            "--recorder",
            "instrumented",
            *USUAL_CACHES,
            "--",
            program,
        )
        lines = n * 8 // 64
        assert found["recorder"] == "instrumented"
        assert 4 * lines * 0.99 < found["l2_misses"] < 4 * lines * 1.02
        made = [s for s in found["sites"] if s.get("source", "").endswith((".c:5", ".c:6"))]
        assert sum(site["allocations"] for site in made) == 2
        assert n + middle <= found["loads"] < 1.01 * (n + middle)
        assert n + middle <= found["stores"] < 1.01 * (n + middle)
    plain = compile_c(tmp_path, "other", FLOATS)
    done = run_nearfar("trace", "-o", "N", "--recorder", "instrumented", "--", str(plain))
    assert "nothing of" in done.stderr
    assert "trace flags" in done.stderr
    assert subprocess.run([str(tmp_path / "plain")], check=False).returncode == 0  # untraced
