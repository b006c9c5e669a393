"""What tracing costs: each program natively, under the bare emulator and traced, in turns.

Usage: python benchmarks/trace_cost.py [REPEATS [PROGRAM...]], after `make build`; wants
gcc and qemu-x86_64. A row a program: medians of wall times, their ratios with the range over the
repeats, bytes a recorded line. A ratio is of a traced run to the bare run of the same repeat;
nearfar's own start-up (its time for `true`, less the emulator's) is taken off.
"""

from __future__ import annotations

import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
NEARFAR = str(ROOT / "nearfar")
GUPS = """
#include <stdlib.h>
int main(int n, char **v) {
  int bits = atoi(v[1]);
  long count = atol(v[2]);
  unsigned long *t = calloc(8, 1ul << bits), r = 1;
  for (long i = 0; i < count; ++i) {
    r = r * 6364136223846793005ul + 1442695040888963407ul;
    t[r >> (64 - bits)] ^= r;
  }
  return t[5] == 1;
}
"""
CALLS = """
#include <stdlib.h>
static __attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(int n, char **v) { return fib(atoi(v[1])) == 0; }
"""
BLOCKS = """
#include <stdlib.h>
int main(int n, char **v) {
  static char *p[1000];
  unsigned r = 1;
  for (long i = atol(v[1]); i > 0; --i) {
    r = r * 1664525 + 1013904223;
    unsigned k = (r >> 16) % 1000;
    free(p[k]);
    p[k] = malloc(16 + (r >> 8) % 500);
    p[k][0] = 1;
  }
  return 0;
}
"""
MERGE = """
#include <stdlib.h>
#include <string.h>
static void sort(unsigned *a, unsigned *b, long n) {
  if (n < 2) return;
  long h = n / 2, i = 0, j = h, k = 0;
  sort(a, b, h);
  sort(a + h, b, n - h);
  while (i < h && j < n) b[k++] = a[i] <= a[j] ? a[i++] : a[j++];
  while (i < h) b[k++] = a[i++];
  while (j < n) b[k++] = a[j++];
  memcpy(a, b, n * sizeof *a);
}
int main(int c, char **v) {
  long n = atol(v[1]);
  unsigned *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), x = 1;
  for (long i = 0; i < n; ++i) a[i] = x = x * 1664525u + 1013904223u;
  sort(a, b, n);
  for (long i = 1; i < n; ++i) if (a[i - 1] > a[i]) return 1;
  return 0;
}
"""
PROGRAMS = {
    "quicksort": (ROOT / "tests/programs/sort.c", ["2000000"]),
    "mergesort": (MERGE, ["2000000"]),
    "matmul": (ROOT / "tests/programs/matmul.c", ["300"]),
    "list": (ROOT / "tests/programs/list.c", ["400000", "10"]),
    "gups": (GUPS, ["24", "10000000"]),
    "calls": (CALLS, ["35"]),
    "malloc": (BLOCKS, ["3000000"]),
}


def compiled(name: str, text: str | Path, folder: Path, *flags: str) -> str:
    source = folder / f"{name}.c"
    source.write_text(text.read_text() if isinstance(text, Path) else text)
    target = folder / ("-".join([name, *(["instrumented"] if flags else [])]))
    subprocess.run(["gcc", "-O2", str(source), "-o", str(target), *flags], check=True)
    return str(target)


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    chosen = sys.argv[2:] or list(PROGRAMS)
    flags = shlex.split(
        subprocess.run([NEARFAR, "trace", "flags"], capture_output=True, text=True).stdout
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        trace = folder / "T"
        start_up = min(
            seconds([NEARFAR, "trace", "-o", str(trace), "--", "/bin/true"])
            - seconds(["qemu-x86_64", "/bin/true"])
            for _ in range(3)
        )
        print(f"start-up of nearfar trace, taken off: {start_up:.3f} s")
        print(f"{'program':10} native  emulated  traced  instrumented   traced/emulated    "
              "traced/native  instrumented/native  bytes a line")  # fmt: skip
        for name in chosen:
            text, arguments = PROGRAMS[name]
            program = [compiled(name, text, folder), *arguments]
            other = [compiled(name, text, folder, *flags), *arguments] if flags else []
            times: list[tuple[float, float, float, float]] = []
            for _ in range(repeats):
                bare = seconds(program), seconds(["qemu-x86_64", *program])
                traced = seconds([NEARFAR, "trace", "-q", "-o", str(trace), "--", *program])
                told = subprocess.run(
                    [NEARFAR, "trace", "stats", str(trace), "--json", "-"],
                    capture_output=True, text=True, check=True,
                ).stdout  # fmt: skip
                instrumented = (
                    seconds([NEARFAR, "trace", "-q", "--recorder", "instrumented", "-o",
                             str(trace), "--", *other]) - start_up if other else float("nan")
                )  # fmt: skip
                times.append((*bare, traced - start_up, instrumented))
            report(name, times, told)


def report(name: str, times: list[tuple[float, float, float, float]], told: str) -> None:
    import json

    native, emulated, traced, instrumented = (
        statistics.median(column) for column in zip(*times, strict=True)
    )
    ratios = sorted(row[2] / row[1] for row in times)
    found = json.loads(told)
    print(
        f"{name:10} {native:6.3f}  {emulated:8.3f}  {traced:6.3f}  {instrumented:12.3f}   "
        f"{statistics.median(ratios):5.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})   "
        f"{traced / native:13.1f}  {instrumented / native:19.2f}  "
        f"{found['size_bytes'] / max(found['records'], 1):12.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
