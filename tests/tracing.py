"""Programs traced by ``nearfar trace``, and what is read back of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import RunNearfar
from nearfar.errors import MachineError
from nearfar.tracing.recording import plugin_for_emulator


def _emulator_loads_plugins() -> bool:
    try:
        plugin_for_emulator()
    except MachineError:
        return False
    return True


EMULATOR_WORKS = _emulator_loads_plugins()
needs_emulator = pytest.mark.skipif(
    not EMULATOR_WORKS,
    reason="no qemu-x86_64 with plug-ins is installed (package qemu-user): nothing is traced",
)
#: Caches that small programs overflow, whatever machine this is: cachegrind's "usual" ones.
USUAL_CACHES = ["--l1", "32KiB/8", "--l2", "256KiB/16", "--llc", "none", "--no-prefetch"]


def stats(run_nearfar: RunNearfar, trace: Path) -> dict[str, Any]:
    done = run_nearfar("trace", "stats", str(trace), "--json", "-")
    assert done.code == 0, done
    return dict(json.loads(done.stdout))


def traced(run_nearfar: RunNearfar, trace: Path, *arguments: str | Path) -> dict[str, Any]:
    """A program traced to its end; ``arguments``: flags, --, and its command line."""
    done = run_nearfar("trace", "-o", str(trace), *map(str, arguments))
    assert done.code == 0, done
    found = stats(run_nearfar, trace)
    assert found["complete"], found["ending"]
    assert found["loads"] > 0
    return found


#: A chase through 40000 nodes, and stores to a table of 8 MiB.
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
