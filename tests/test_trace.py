"""``nearfar trace``: real programs under the emulator."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compiling import compile_c
from conftest import RunNearfar
from tracing import SITES, USUAL_CACHES, needs_emulator, stats, traced


@needs_emulator
def test_sites_lives_and_dependences(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compile_c(tmp_path, "sites", SITES)
    trace = tmp_path / "T"
    found = traced(run_nearfar, trace, *USUAL_CACHES, "--", program)
    heap = {site.get("source", "").rpartition(":")[2]: site for site in found["sites"]}
    nodes, table = heap["6"], heap["7"]
    assert nodes["allocations"] == table["allocations"] == 1
    assert nodes["peak_bytes"] == 40000 * 64
    assert nodes["site"].count("+0x") >= 1
    assert table["store"] > (8 << 20) / 64 * 0.95
    assert nodes["load"] > 150_000
    assert found["dependent"] > 0.95 * nodes["load"]
    shown = run_nearfar(
        "trace", "show", str(trace), "--first", "100000", "--count", "3", "--json", "-"
    )
    lines = json.loads(shown.stdout)["lines"]
    assert [line["number"] for line in lines] == [100000, 100001, 100002]
    assert "sites.c:" in run_nearfar("trace", "show", str(trace), "--first", "100000").stdout
    text = run_nearfar("trace", "stats", str(trace)).stdout
    assert "sites.c:6" in text
    assert "not traced" in text


CHASE = """
#include <stdlib.h>
int main(void) {
  long n = 1 << 16, at = 0;
  long *a = malloc(n * 64);
  for (long i = 0; i < n; ++i) a[8 * i] = STEP;
  for (long i = 0; i < 3 * n; ++i) at = NEXT;
  return at == -1;
}
"""


@needs_emulator
@pytest.mark.parametrize(
    ("step", "following", "share"),
    [
        ("(i + 12347) % n", "a[8 * at]", 1.0),
        ("(i * 1237 + 17) % n", "a[8 * at]", 1.0),
        ("(i * 1237 + 16) % n", "a[8 * at] ^ (i & 1)", 1.0),
        ("(i * 1237 + 17) % n", "at ^ (a[8 * (i * 7919 * 7919 % n)] & 1)", 0.0),
    ],
)
def test_a_chase_by_index_depends(
    step: str, following: str, share: float, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    """Also if a bit is added to the index; independent loads at random places do not."""
    text = CHASE.replace("STEP", step).replace("NEXT", following)
    program = compile_c(tmp_path, "chase", text)
    found = traced(run_nearfar, tmp_path / "T", *USUAL_CACHES, "--", program)
    steps = 3 * (1 << 16)
    assert (share - 0.05) * steps < found["dependent"] < (share + 0.02) * steps


THREADS = """
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
static _Atomic long sum;
static void *work(void *unused) {
  long *a = malloc(1 << 20);
  for (long i = 0; i < (1 << 20) / 8; ++i) sum += a[i] = i;
  free(a);
  return unused;
}
int main(void) {
  pthread_t t[4];
  for (int i = 0; i < 4; ++i) pthread_create(&t[i], 0, work, 0);
  for (int i = 0; i < 4; ++i) pthread_join(t[i], 0);
  printf("%ld\\n", sum);
  return 0;
}
"""

FORKS = """
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  char *a = malloc(1 << 20);
  for (int i = 0; i < 1 << 20; i += 64) a[i] = 1;
  for (int child = 0; child < 2; ++child)
    if (fork() == 0) {
      for (int i = 0; i < 1 << 20; i += 64) a[i] = 2;
      _exit(0);
    }
  while (wait(0) > 0) ;
  execl("/bin/true", "true", (char *)0);
  return 1;
}
"""


@needs_emulator
def test_threads(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compile_c(tmp_path, "threads", THREADS, "-pthread")
    found = traced(run_nearfar, tmp_path / "T", "--", program)
    elements = 4 * (1 << 17)
    assert found["threads"] == 5
    assert found["processes"] == 1
    assert 2 * elements <= found["stores"] < 2.2 * elements  # the array's, and the sum's


@needs_emulator
@pytest.mark.parametrize("followed", [True, False])
def test_forked_children_and_programs_that_are_started_are_traced(
    followed: bool, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = FORKS if followed else FORKS.replace("execl", 'putenv("LD_LIBRARY_PATH=a,b"); execl')
    program = compile_c(tmp_path, "forks", text)
    flags = [*USUAL_CACHES, "--after", "l1", "--json", "-"]
    done = run_nearfar("trace", "-o", "T", *flags, "--", str(program))
    reported = "1 programs that it started (exec) are not in the trace"
    assert (reported in done.stderr) is not followed
    programs = {
        Path(p["path"]).name: p["instructions"] for p in json.loads(done.stdout)["programs"]
    }
    assert set(programs) == ({"forks", "true"} if followed else {"forks"})
    assert min(programs.values()) > 10_000
    found = stats(run_nearfar, tmp_path / "T")
    assert found["processes"] == (4 if followed else 3)
    assert any("exec" in sentence for sentence in found["not_traced"])
    heap = [site for site in found["sites"] if site["kind"] == "heap"]
    assert sum(site["store"] for site in heap) > 3 * (1 << 20) // 64 - 10


@needs_emulator
def test_python_and_gcc(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    script = "print(sum(len(str(i)) for i in range(2000)))"
    python = Path(sys.executable).resolve()
    done = run_nearfar("trace", "-o", "P", "--", str(python), "-S", "-c", script)
    assert done.code == 0
    assert done.stdout == "6890\n"
    found = stats(run_nearfar, tmp_path / "P")
    assert any(site["kind"] == "heap" for site in found["sites"])
    if shutil.which("gcc"):
        # New each time: a ccache in gcc's place would answer without starting a compiler.
        factor = time.time_ns() % 1_000_000_007
        (tmp_path / "x.c").write_text(f"int f(int a) {{ return a * {factor}; }}\n")
        command = ["gcc", "-O2", "-c", "x.c", "-o", "x.o"]
        done = run_nearfar("trace", "-o", "G", "--json", "-", "--", *command)
        assert done.code == 0
        assert (tmp_path / "x.o").stat().st_size > 0
        assert Path(json.loads(done.stdout)["programs"][0]["path"]).name == "cc1"


GO = """
package main

import "sync"

func main() {
	var group sync.WaitGroup
	for k := 0; k < 4; k++ {
		group.Add(1)
		go func() {
			defer group.Done()
			m := map[int]int{}
			for i := 0; i < 10000; i++ {
				m[i*7] = i
			}
		}()
	}
	group.Wait()
}
"""


@needs_emulator
@pytest.mark.long
@pytest.mark.skipif(
    shutil.which("go", path=f"{os.environ['PATH']}:/usr/local/go/bin") is None,
    reason="go is not installed: no Go program is traced",
)
def test_go(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    go = shutil.which("go", path=f"{os.environ['PATH']}:/usr/local/go/bin")
    assert go is not None
    (tmp_path / "p.go").write_text(GO)
    environment = {**os.environ, "HOME": str(tmp_path), "GOFLAGS": "-mod=mod"}
    subprocess.run([go, "build", "-o", "p", "p.go"], cwd=tmp_path, env=environment, check=True)
    found = traced(run_nearfar, tmp_path / "T", "--", "./p")
    assert found["threads"] > 1


@needs_emulator
def test_instructions_beyond_the_emulator_recommend_instrumentation(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    wide = 'int main(void) { __asm__ volatile("vpxord %%zmm1, %%zmm1, %%zmm1" ::: "xmm1"); }\n'
    done = run_nearfar("trace", "-o", "W", "--", str(compile_c(tmp_path, "wide", wide)))
    assert "AVX-512" in done.stderr
    assert "--recorder instrumented" in done.stderr
    assert "`nearfar advise` does not support that recorder" in done.stderr
    assert stats(run_nearfar, tmp_path / "W")["complete"]
    floats = "int main(int n, char **v) { volatile double x = n; double s = 0;\n"
    floats += "for (int i = 0; i < 100000; ++i) s += x * s; return s < 0; }\n"
    done = run_nearfar("trace", "-o", "F", "--", str(compile_c(tmp_path, "floats", floats)))
    assert "floating point" in done.stderr
    assert "--recorder instrumented" in done.stderr
    assert "`nearfar advise` does not support that recorder" in done.stderr


def test_the_tlb_is_the_hosts() -> None:
    from nearfar.profiles import load_host
    from nearfar.tracing.caches import USUAL_TLB, caches_of

    given: dict[str, str | None] = {"l1": "32KiB/8", "l2": "1MiB/16", "llc": "none"}
    host = load_host("xeon-5317")
    reported = (host.scalar("dtlb_entries"), host.scalar("stlb_entries"))
    assert tuple(entries for entries, _ in caches_of(host, given).tlb) == reported
    silent = host.model_copy(update={"figures": {}})
    assert caches_of(silent, given).tlb == USUAL_TLB
    assert any("TLB" in note for note in caches_of(silent, given).notes)


def test_a_number_of_ways_beyond_any_cache_is_refused(run_nearfar: RunNearfar) -> None:
    done = run_nearfar("trace", "record", "-o", "t", "--l1", f"32KiB/{'9' * 23}", "--", "true")
    assert done.code == 2
    assert "invalid cache" in done.stderr
