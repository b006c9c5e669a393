"""Cost of tracing: each program natively, under the bare emulator and traced, in turns.

Usage: python benchmarks/trace_cost.py [REPEATS [PROGRAM...]], after `make build`; wants
gcc and qemu-x86_64. A row a program: medians of wall times, their ratios with the range over the
repeats, bytes a recorded line. A ratio is of a traced run to the bare run of the same repeat;
nearfar's own start-up is taken off: for each recorder, the median time of an empty program under
it, less that program's time under the bare emulator, or natively.
"""

from __future__ import annotations

import json
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
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
EMPTY = "int main(void) { return 0; }\n"
PROGRAMS: dict[str, tuple[str | Path, list[str]]] = {
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


def output(*arguments: str) -> str:
    return subprocess.run([NEARFAR, *arguments], capture_output=True, text=True, check=True).stdout


def seconds(command: list[str]) -> float:
    """Of a command that must succeed: a refused trace takes no time."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return time.perf_counter() - start


class Runs:
    """A program in all four ways. Each trace replaces the last one."""

    def __init__(self, folder: Path, flags: list[str]) -> None:
        self.folder, self.flags, self.trace = folder, flags, folder / "T"

    def times(
        self, name: str, text: str | Path, arguments: list[str]
    ) -> Callable[[], tuple[float, float, float, float]]:
        """Compiles it. Each call runs it natively, emulated, traced and instrumented."""
        program = [compiled(name, text, self.folder), *arguments]
        instrumented_command = [compiled(name, text, self.folder, *self.flags), *arguments]
        return lambda: (
            seconds(program),
            seconds(["qemu-x86_64", *program]),
            self.traced(["--recorder", "instrumented", "--", *instrumented_command]),
            self.traced(["--", *program]),
        )

    def traced(self, arguments: list[str]) -> float:
        self.trace.unlink(missing_ok=True)
        return seconds([NEARFAR, "trace", "-q", "-o", str(self.trace), *arguments])

    def bytes_a_line(self) -> float:
        """Of the trace written last."""
        found = json.loads(output("trace", "stats", str(self.trace), "--json", "-"))
        return float(found["size_bytes"] / max(found["records"], 1))


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    chosen = sys.argv[2:] or list(PROGRAMS)
    with tempfile.TemporaryDirectory() as place:
        runs = Runs(Path(place), shlex.split(output("trace", "flags")))
        empty = runs.times("empty", EMPTY, [])
        native, emulated, instrumented, traced = map(
            statistics.median, zip(*(empty() for _ in range(9)), strict=True)
        )
        start_ups = 0.0, 0.0, instrumented - native, traced - emulated
        print(f"start-up taken off: traced {start_ups[3]:.3f} s, instrumented {start_ups[2]:.3f} s")
        print(
            f"{'program':10} native  emulated  traced  instrumented   traced/emulated    "
            "traced/native  instrumented/native  bytes a line"
        )
        for name in chosen:
            run = runs.times(name, *PROGRAMS[name])
            times = [
                tuple(time - start for time, start in zip(run(), start_ups, strict=True))
                for _ in range(repeats)
            ]
            report(name, times, runs.bytes_a_line())


def report(name: str, times: list[tuple[float, ...]], bytes_a_line: float) -> None:
    native, emulated, instrumented, traced = (
        statistics.median(column) for column in zip(*times, strict=True)
    )
    ratios = sorted(row[3] / row[1] for row in times)
    print(
        f"{name:10} {native:6.3f}  {emulated:8.3f}  {traced:6.3f}  {instrumented:12.3f}   "
        f"{statistics.median(ratios):5.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})   "
        f"{traced / native:13.1f}  {instrumented / native:19.2f}  {bytes_a_line:12.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
