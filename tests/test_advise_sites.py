"""Sites of ``nearfar advise``: charges, labels, and what a plan promises."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import RunNearfar
from small_host import write_small_host
from tracing import needs_emulator

pytestmark = needs_emulator

IDLE_THREAD = """#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
struct node { struct node* next; char pad[56]; };
static struct node* volatile end;
static void* idle(void* nothing) {
  char text[64];
  for (int i = 0; !end; ++i) {
    usleep(2000);
    snprintf(text, sizeof text, "%d of %g", i, 0.5 * i);
  }
  return nothing;
}
int main(void) {
  size_t n = 1 << 17, at = 0;
  pthread_t thread;
  pthread_create(&thread, 0, idle, 0);
  struct node* nodes = malloc(n * sizeof *nodes);
  for (size_t i = 0; i < n; ++i) {
    size_t to = (at * 5 + 12345) & (n - 1);
    nodes[at].next = nodes + to;
    at = to;
  }
  struct node* p = nodes;
  for (size_t i = 0; i < 4 * n; ++i) p = p->next;
  end = p;
  pthread_join(thread, 0);
  return 0;
}
"""
#: Two tables by one inlined function, which two inlined functions call.
INLINED = """#include <stdlib.h>
#define INLINE static inline __attribute__((always_inline))
INLINE volatile char* table(size_t bytes) {
  return malloc(bytes);
}
INLINE volatile char* first_table(void) {
  return table(1 << 21);
}
INLINE volatile char* second_table(void) {
  return table(1 << 22);
}
int main(void) {
  volatile char *a = first_table(), *b = second_table();
  for (int i = 0; i < 1 << 21; i += 64) a[i] = b[i] = 1;
  return 0;
}
"""
#: A table of 2 MiB that grows from 16 bytes by factors of two, and one that does not.
GROWING = """#include <stdlib.h>
int main(void) {
  volatile char* plain = malloc(1 << 20);
  char* grown = malloc(16);
  for (size_t bytes = 32; bytes <= 1 << 21; bytes *= 2) {
    grown = realloc(grown, bytes);
    for (size_t i = bytes / 2; i < bytes; i += 64) ((volatile char*)grown)[i] = 1;
  }
  for (int i = 0; i < 1 << 20; i += 64) plain[i] = 1;
  return 0;
}
"""


def advice(run_nearfar: RunNearfar, folder: Path, name: str, source: str) -> Any:
    (folder / f"{name}.c").write_text(source)
    subprocess.run(["cc", "-O1", "-g", "-pthread", "-o", name, f"{name}.c"], check=True, cwd=folder)
    host = write_small_host(folder / "small.toml")
    done = run_nearfar(
        "advise",
        "--emulate",
        "--near",
        "ddr4",
        "--host",
        str(host),
        "--json",
        "-",
        "--",
        f"./{name}",
    )
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


def test_no_site_is_charged_more_than_its_accesses_wait(
    tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    """A pointer chase and an idle thread: the chase costs, and libc's globals do not."""
    found = advice(run_nearfar, tmp_path, "idle", IDLE_THREAD)
    for site in found["sites"]:
        accesses = site["reads"] + site["writes"]
        assert site["far_time_s"] <= accesses * found["far_latency_ns"] * 1e-9, site
    first = found["sites"][0]
    assert first["at"].startswith("idle.c:")
    assert first["size_bytes"] == 64 << 17
    libc = [site for site in found["sites"] if site["at"].startswith("globals of libc")]
    assert libc
    assert all(site["far_time_s"] < 0.01 * first["far_time_s"] for site in libc)


def test_sites_of_one_inlined_function_are_distinguished_by_its_callers(
    tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    found = advice(run_nearfar, tmp_path, "inlined", INLINED)
    sizes = {site["at"]: site["size_bytes"] for site in found["sites"] if site["kind"] == "heap"}
    assert sizes["inlined.c:7>4"] == 1 << 21
    assert sizes["inlined.c:10>4"] == 1 << 22
    table = next(site for site in found["sites"] if site["at"] == "inlined.c:7>4")
    assert table["functions"][:3] == [
        "table inlined.c:4",
        "first_table inlined.c:7",
        "main inlined.c:13",
    ]


def test_a_plan_is_kept_by_the_run_that_it_was_made_from_where_blocks_grow(
    tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    found = advice(run_nearfar, tmp_path, "growing", GROWING)
    grown = next(site for site in found["sites"] if site["allocated_bytes"] == 1 << 21)
    assert grown["allocations"] == 1
    done = run_nearfar(
        "run",
        "--plan",
        found["plan"],
        "--tier",
        "far=dram",
        "--check",
        "--json",
        "-",
        "--",
        "./growing",
    )
    check = json.loads(done.stdout)["check"]
    assert done.code == 0, done.stderr
    counted = {rule["at"]: rule["allocated_bytes"] for rule in check["rules"]}
    promised = {rule["at"]: rule["promised_bytes"] for rule in check["rules"]}
    assert counted[grown["at"]] == pytest.approx(promised[grown["at"]], rel=0.05)


def test_the_answer_reports_its_latencies_and_cache(
    tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    source = INLINED.replace("1 << 22", "1 << 23")
    found = advice(run_nearfar, tmp_path, "inlined", source)
    assert found["far_latency_ns"] == found["fars"][0]["far_latency_ns"] == 250
    assert 50 < found["near_latency_ns"] < 250
    assert found["last_cache_bytes"] == 0  # the host of these tests has none
    done = run_nearfar("report", found["record"])
    assert done.code == 0, done.stderr
    page = (tmp_path / found["record"] / "report.html").read_text()
    assert "What it stands on" in page
    assert "near ddr4" in page
