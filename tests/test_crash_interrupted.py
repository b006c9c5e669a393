"""Ctrl-C and SIGTERM while ``crash lint`` records: what was found is reported."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from compiling import compile_c
from crashing import needs_libpmem

pytestmark = needs_libpmem

#: Stores twice, flushes once, and waits: until a signal, or for ever if its first argument says so.
SERVER = """
#include <libpmem.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static volatile sig_atomic_t ends;
static void end(int number) { (void)number; ends = 1; }
int main(int argc, char **argv) {
  const int obeys = argc > 2 && strcmp(argv[1], "obeys") == 0;
  signal(SIGINT, obeys ? end : SIG_IGN);
  signal(SIGTERM, obeys ? end : SIG_IGN);
  volatile long *pool = pmem_map_file(argv[argc - 1], 4096, PMEM_FILE_CREATE, 0600, 0, 0);
  pool[0] = 1;
  pool[8] = 1; /* LOST */
  pmem_persist((void *)pool, 8);
  fclose(fopen("ready", "w"));
  while (!ends) usleep(1000);
  pool[16] = 1;
  pmem_persist((void *)(pool + 16), 8);
  return 0;
}
"""


def started(folder: Path, way: str) -> subprocess.Popen[str]:
    """``crash lint`` on the server, which waits."""
    program = compile_c(folder, "server", SERVER, "-lpmem")
    command = [sys.executable, "-m", "nearfar.cli.app", "crash", "lint", "--json", "-", "--"]
    child = subprocess.Popen(
        [*command, program, way, "pool"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (folder / "ready").exists():
        assert child.poll() is None
        time.sleep(0.02)
    return child


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("way", ["obeys", "ignores"])
def test_what_was_found_is_reported(way: str, by: signal.Signals, tmp_path: Path) -> None:
    with started(tmp_path, way) as child:
        child.send_signal(by)
        out, err = child.communicate(timeout=60)
    found: dict[str, Any] = json.loads(out)
    assert child.returncode == 130, err
    assert [each["rule"] for each in found["findings"]] == ["unflushed"]
    assert found["verdict"] == "violation"
    assert "interrupted: only the findings up to then are reported" in found["warnings"]
    assert any("SIGKILL" in each for each in found["warnings"]) == (way == "ignores")


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    with started(tmp_path, "ignores") as child:
        for _ in range(2):
            child.send_signal(signal.SIGINT)
            time.sleep(0.2)
        out, err = child.communicate(timeout=0.7)  # less than the program may take to end
    assert (child.returncode, out) == (130, "")
    assert err.endswith("nearfar: interrupted\n")
