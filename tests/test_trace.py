"""``nearfar trace``: real programs under the emulator, their counts against valgrind's."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from conftest import RunNearfar
from test_cache_cachegrind import build, cachegrind, valgrind

needs_emulator = pytest.mark.skipif(
    shutil.which("qemu-x86_64") is None,
    reason="qemu-x86_64 is not installed (package qemu-user): nothing is traced",
)
needs_valgrind = pytest.mark.skipif(
    shutil.which("valgrind") is None, reason="valgrind is not installed: nothing to compare with"
)
EQUAL_TO_USUAL = ["--l1", "32KiB/8", "--l2", "256KiB/16", "--llc", "none", "--no-prefetch"]


def compile_c(folder: Path, name: str, text: str, *flags: str) -> str:
    source = folder / f"{name}.c"
    source.write_text(text)
    subprocess.run(["gcc", "-O1", *flags, str(source), "-o", str(folder / name)], check=True)
    return str(folder / name)


def stats(run_nearfar: RunNearfar, trace: Path) -> dict[str, Any]:
    done = run_nearfar("trace", "stats", str(trace), "--json", "-")
    assert done.code == 0, done
    return dict(json.loads(done.stdout))


def traced(run_nearfar: RunNearfar, trace: Path, *arguments: str) -> dict[str, Any]:
    done = run_nearfar("trace", "-o", str(trace), *arguments)
    assert done.code == 0, done
    found = stats(run_nearfar, trace)
    assert found["complete"], found["ending"]
    assert found["loads"] > 0
    return found


def lackey(program: list[str], folder: Path) -> dict[str, int]:
    file = folder / "lackey"
    valgrind("--tool=lackey", "--trace-mem=yes", f"--log-file={file}", *program)
    kinds = dict.fromkeys("LSM", 0)
    with file.open() as lines:
        for line in lines:
            if line[:1] == " " and line[1:2] in kinds:
                kinds[line[1]] += 1
    return {"loads": kinds["L"] + kinds["M"], "stores": kinds["S"] + kinds["M"]}


def counted(
    run_nearfar: RunNearfar, program: list[str], folder: Path
) -> tuple[dict[str, int], dict[str, int]]:
    """Our counts of one run and valgrind's."""
    found = traced(run_nearfar, folder / "T", *EQUAL_TO_USUAL, "--", *program)
    theirs = cachegrind(program, "usual", folder) | lackey(program, folder)
    theirs["l1_misses"] = theirs["D1mr"] + theirs["D1mw"]
    theirs["l2_misses"] = theirs["DLmr"] + theirs["DLmw"]
    return found, theirs


def check_counts(
    run_nearfar: RunNearfar, name: str, less: list[str], more: list[str], folder: Path
) -> None:
    """What more work adds to each count, so that what libc does before main, on whatever
    processor it finds, is in neither figure."""
    program = build(name, folder)
    ours, theirs = zip(
        *(counted(run_nearfar, [program, *arguments], folder) for arguments in (less, more)),
        strict=True,
    )
    for key in ("loads", "stores", "l1_misses", "l2_misses"):
        added, wanted = ours[1][key] - ours[0][key], theirs[1][key] - theirs[0][key]
        share, slack = (0.005, 40) if key.endswith("misses") else (0.001, 40)
        print(f"{name} {key}: {added} more of ours, {wanted} more of valgrind's")
        assert abs(added - wanted) <= max(share * wanted, slack), (name, key)


@needs_emulator
@needs_valgrind
def test_counts_are_valgrinds(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    check_counts(run_nearfar, "list", ["20000", "1"], ["20000", "4"], tmp_path)


@pytest.mark.long
@needs_emulator
@needs_valgrind
@pytest.mark.parametrize(
    ("name", "less", "more"),
    [
        ("sort", ["5000"], ["50000"]),
        ("matmul", ["30"], ["90"]),
        ("list", ["30000", "2"], ["30000", "20"]),
    ],
)
def test_counts_are_valgrinds_on_three_programs(
    name: str, less: list[str], more: list[str], run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    check_counts(run_nearfar, name, less, more, tmp_path)


SITES = """
#include <stdlib.h>
struct node { struct node *next; long rest[7]; };
int main(void) {
  long n = 40000;
  struct node *nodes = malloc(n * sizeof *nodes);
  volatile long *table = calloc(1, 8 << 20);
  for (long i = 0; i < n; ++i) nodes[i].next = &nodes[(i + 12347) % n];
  struct node *at = nodes;
  for (long i = 0; i < 4 * n; ++i) at = at->next;
  for (long i = 0; i < 1 << 20; ++i) table[i] = i;
  free((void *)table);
  return at == 0;
}
"""


@needs_emulator
def test_sites_lives_and_dependences(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compile_c(tmp_path, "sites", SITES, "-g")
    trace = tmp_path / "T"
    found = traced(run_nearfar, trace, *EQUAL_TO_USUAL, "--", program)
    heap = {site.get("source", "").rpartition(":")[2]: site for site in found["sites"]}
    nodes, table = heap["6"], heap["7"]
    assert nodes["allocations"] == table["allocations"] == 1
    assert nodes["peak_bytes"] == 40000 * 64
    assert nodes["site"].count("+0x") >= 1
    assert table["store"] > (8 << 20) / 64 * 0.95
    assert nodes["load"] > 150_000
    assert found["dependent"] > 0.95 * nodes["load"]
    shown = run_nearfar("trace", "show", str(trace), "--first", "100000", "-n", "3", "--json", "-")
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
  for (long i = 0; i < 3 * n; ++i) at = a[8 * at];
  return at == -1;
}
"""


@needs_emulator
@pytest.mark.parametrize("step", ["(i + 12347) % n", "(i * 1237 + 17) % n"])
def test_a_chase_by_index_depends(step: str, run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compile_c(tmp_path, "chase", CHASE.replace("STEP", step))
    found = traced(run_nearfar, tmp_path / "T", *EQUAL_TO_USUAL, "--", program)
    steps = 3 * (1 << 16)
    assert 0.95 * steps < found["dependent"] < 1.02 * steps


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
def test_forked_children_are_traced_and_programs_are_not(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "forks", FORKS)
    done = run_nearfar("trace", "-o", "T", "--after", "l1", "--", program)
    assert "1 programs that it started (exec) are not in the trace" in done.stderr
    found = stats(run_nearfar, tmp_path / "T")
    assert found["processes"] == 3
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
        (tmp_path / "x.c").write_text("int f(int a) { return a * 7; }\n")
        done = run_nearfar("trace", "-o", "G", "--", "gcc", "-O2", "-c", "x.c", "-o", "x.o")
        assert done.code == 0
        assert (tmp_path / "x.o").stat().st_size > 0
        assert "programs that it started (exec)" in done.stderr


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
def test_what_the_emulator_cannot_do_leads_to_instrumentation(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    wide = 'int main(void) { __asm__ volatile("vpxord %%zmm1, %%zmm1, %%zmm1" ::: "xmm1"); }\n'
    done = run_nearfar("trace", "-o", "W", "--", compile_c(tmp_path, "wide", wide))
    assert "AVX-512" in done.stderr
    assert "--recorder instrumented" in done.stderr
    assert stats(run_nearfar, tmp_path / "W")["complete"]
    floats = "int main(int n, char **v) { volatile double x = n; double s = 0;\n"
    floats += "for (int i = 0; i < 100000; ++i) s += x * s; return s < 0; }\n"
    done = run_nearfar("trace", "-o", "F", "--", compile_c(tmp_path, "floats", floats))
    assert "floating point" in done.stderr
    assert "--recorder instrumented" in done.stderr


RANDOM = """
#include <stdlib.h>
int main(void) {
  unsigned long *a = calloc(1, 64 << 20), r = 1;
  for (long i = 0; i < 3000000; ++i) {
    r = r * 6364136223846793005ul + 1442695040888963407ul;
    a[r >> 41] += r;
  }
  return a[1] == 7;
}
"""


@needs_emulator
def test_a_full_disk_leaves_a_trace(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compile_c(tmp_path, "random", RANDOM)
    traced = f"{sys.executable} -m nearfar.cli.main trace -o T --after l1 -- {program}"
    limited = f"ulimit -f 9000; exec {traced}"
    done = subprocess.run(
        ["bash", "-c", limited], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done
    assert "could not be written to its end" in done.stderr
    assert "Traceback" not in done.stderr
    found = stats(run_nearfar, tmp_path / "T")
    assert not found["complete"]
    assert "cut short" in found["ending"]
    assert found["records"] > 0


ENDLESS = """
#include <stdlib.h>
int main(void) {
  volatile char *a = calloc(1, 64 << 20);
  for (;;) for (long i = 0; i < 64 << 20; i += 64) a[i] = 1;
}
"""


@needs_emulator
def test_an_interrupt_leaves_a_whole_trace(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compile_c(tmp_path, "endless", ENDLESS)
    trace = tmp_path / "T"
    process = subprocess.Popen(
        [sys.executable, "-m", "nearfar.cli.main", "trace", "-o", str(trace), "--", program],
        start_new_session=True, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not (trace.exists() and trace.stat().st_size > 2000) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    found = stats(run_nearfar, trace)
    assert found["complete"]
    assert found["records"] > 0


def record_blocks(trace: bytes) -> list[int]:
    """Offsets of the blocks of records, by the heads that docs/formats/trace.md describes."""
    (fields,) = struct.unpack_from("<12xI", trace)
    at, found = 20 + fields, []
    while at < len(trace) - 16:
        kind, stored = struct.unpack_from("<4xB3xI", trace, at)
        if kind == 1:
            found.append(at)
        at += 32 + stored
    return found


@needs_emulator
def test_a_cut_or_damaged_trace_is_read_up_to_there(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "sites", SITES)
    whole = traced(run_nearfar, tmp_path / "T", "--after", "l1", "--", program)
    contents = (tmp_path / "T").read_bytes()
    blocks = record_blocks(contents)
    middle = blocks[len(blocks) // 2] + 40
    (tmp_path / "cut").write_bytes(contents[:middle])
    damaged = bytearray(contents)
    damaged[middle] ^= 16
    (tmp_path / "damaged").write_bytes(damaged)
    for name, word in (("cut", "cut short"), ("damaged", "damaged")):
        done = run_nearfar("trace", "stats", name)
        assert done.code == 0
        assert f"the trace is {word} at offset" in done.stderr
        found = stats(run_nearfar, tmp_path / name)
        assert 0 < found["records"] < whole["records"]
        assert 0 < found["loads"] <= whole["loads"]
        done = run_nearfar("trace", "export", name, "--to", "dramsim3", "-o", f"{name}.txt")
        assert f"the trace is {word} at offset" in done.stderr
    (tmp_path / "other").write_bytes(b"something else")
    run_nearfar("trace", "stats", "other").assert_refused(2)
    run_nearfar("trace", "stats", "nowhere").assert_refused(2)


def test_the_tlb_is_the_hosts() -> None:
    from nearfar.profiles import load_host
    from nearfar.trace.caches import USUAL_TLB, caches_of

    given: dict[str, str | None] = {"l1": "32KiB/8", "l2": "1MiB/16", "llc": "none"}
    host = load_host("xeon-5317")
    told = (host.scalar("dtlb_entries"), host.scalar("stlb_entries"))
    assert tuple(entries for entries, _ in caches_of(host, given).tlb) == told
    silent = host.model_copy(update={"figures": {}})
    assert caches_of(silent, given).tlb == USUAL_TLB
    assert any("TLB" in note for note in caches_of(silent, given).notes)


def test_wrong_use_is_refused(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("not a trace")
    for arguments in (
        ("-o", "T", "--", "no-such-program"),
        ("-o", "mine", "--", "true"),
        ("-o", "T", "--l1", "32KiB", "--", "true"),
        ("-o", "T", "--l1", "48KiB/8", "--", "true"),
        ("-o", "T", "--llc", "none", "--after", "llc", "--", "true"),
        ("-o", "T", "--host", "nobodys", "--", "true"),
    ):
        if shutil.which("qemu-x86_64"):
            run_nearfar("trace", *arguments).assert_refused(2)
    run_nearfar("trace", "-o", "nowhere/T", "--", "true").assert_refused(3)
    assert (tmp_path / "mine").read_text() == "not a trace"
    done = run_nearfar("trace", "-o", "T", "--", "true", env={**os.environ, "PATH": str(tmp_path)})
    done.assert_refused(3)
    assert "qemu-user" in done.stderr


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
        program = compile_c(tmp_path, name, text, "-g", *options, *flags)
        if name == "wide" and "avx512f" not in Path("/proc/cpuinfo").read_text():
            continue  # it was compiled; this processor cannot run it
        found = traced(
            run_nearfar, tmp_path / f"{name}.trace", "--recorder", "instrumented",
            *EQUAL_TO_USUAL, "--", program,
        )  # fmt: skip
        lines = n * 8 // 64
        assert found["recorder"] == "instrumented"
        assert 4 * lines * 0.99 < found["l2_misses"] < 4 * lines * 1.02
        made = [s for s in found["sites"] if s.get("source", "").endswith((".c:5", ".c:6"))]
        assert sum(site["allocations"] for site in made) == 2
        assert n + middle <= found["loads"] < 1.01 * (n + middle)
        assert n + middle <= found["stores"] < 1.01 * (n + middle)
    plain = compile_c(tmp_path, "other", FLOATS)
    done = run_nearfar("trace", "-o", "N", "--recorder", "instrumented", "--", plain)
    assert "nothing of" in done.stderr
    assert "trace flags" in done.stderr
    assert subprocess.run([str(tmp_path / "plain")], check=False).returncode == 0  # untraced


FORMS = {
    "ramulator": "LD 0x1000\nST 0x2040\nLD 0x1040\n",
    "dramsim3": "0x1000 READ 1\n0x2040 WRITE 2\n0x1040 READ 5\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_other_simulators_traces_go_in_and_out(
    form: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    (tmp_path / "theirs").write_text(FORMS[form])
    assert run_nearfar("trace", "import", "theirs", "--from", form, "-o", "T").code == 0
    found = stats(run_nearfar, tmp_path / "T")
    assert found["complete"]
    assert (found["loads"], found["stores"], found["records"]) == (2, 1, 3)
    assert run_nearfar("trace", "export", "T", "--to", form, "-o", "back").code == 0
    assert (tmp_path / "back").read_text() == FORMS[form]
    (tmp_path / "theirs").write_text(FORMS[form] + "LD\n")
    before = (tmp_path / "T").read_bytes()
    refused = run_nearfar("trace", "import", "theirs", "--from", form, "-o", "T")
    refused.assert_refused(2)
    assert "line 4" in refused.stderr
    run_nearfar("trace", "import", "none", "--from", form, "-o", "T").assert_refused(2)
    if shutil.which("qemu-x86_64"):
        run_nearfar("trace", "-o", "T", "--l1", "48KiB/8", "--", "true").assert_refused(2)
    assert (tmp_path / "T").read_bytes() == before
    assert not list(tmp_path.glob("*.partial"))
    run_nearfar("trace", "export", "T", "--to", form, "-o", "back").assert_refused(2)
    (tmp_path / "theirs").write_text(FORMS[form] * 5000)
    assert run_nearfar("trace", "import", "theirs", "--from", form, "-o", "T").code == 0
    limited = f"ulimit -f 100; exec {sys.executable} -m nearfar.cli.main trace export T"
    done = subprocess.run(
        ["bash", "-c", f"{limited} --to {form} -o full"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done
    assert "File too large" in done.stderr
    assert not (tmp_path / "full").exists()


def test_champsim_and_ramulators_older_forms(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    one = struct.pack("<QBB2B4B2Q4Q", 0x401000, 0, 0, *[0] * 6, 0x2040, 0, 0x1000, 0x1040, 0, 0)
    (tmp_path / "c").write_bytes(2 * one)
    assert run_nearfar("trace", "import", "c", "--from", "champsim", "-o", "C").code == 0
    found = stats(run_nearfar, tmp_path / "C")
    assert (found["loads"], found["stores"], found["instructions"]) == (4, 2, 2)
    assert run_nearfar("trace", "export", "C", "--to", "champsim", "-o", "c2").code == 0
    back = (tmp_path / "c2").read_bytes()
    assert len(back) == 6 * 64
    assert struct.unpack_from("<Q24x4Q", back)[:2] == (0x401000, 0x1000)
    (tmp_path / "c").write_bytes(one[:-1])
    run_nearfar("trace", "import", "c", "--from", "champsim", "-o", "C").assert_refused(2)
    (tmp_path / "r").write_text("0x1000 R\n0x2000 W\n3 4096\n4 4160 8192\n")
    assert run_nearfar("trace", "import", "r", "--from", "ramulator", "-o", "R").code == 0
    found = stats(run_nearfar, tmp_path / "R")
    assert (found["loads"], found["stores"], found["instructions"]) == (3, 2, 11)
