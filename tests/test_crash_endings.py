"""How ``crash run`` and ``crash lint`` end: what they say, and their exit codes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from compiling import compile_c
from conftest import RunNearfar
from crashing import BUGGY, document, needs_explorer, needs_libpmem

pytestmark = [needs_explorer, needs_libpmem]


def test_a_full_disk_of_images_loses_no_finding(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    """/dev/full, in the place of images that are then written, is a full disk."""
    program = compile_c(tmp_path, "journal", BUGGY, "-lpmem")
    checker = tmp_path / "check"
    full = "\n".join(f"ln -sf /dev/full {tmp_path}/im/{n}.image" for n in range(1, 5))
    checker.write_text(f"#!/bin/sh\n{full}\necho bad\nexit 1\n")
    checker.chmod(0o755)
    flags = ("--images", str(tmp_path / "im"), "--checker", str(checker), "--json", "-")
    done = run_nearfar("crash", "run", *flags, "--", str(program), str(tmp_path / "pool"))
    found = document(done)
    assert (done.code, found["verdict"]) == (1, "violation"), done
    assert found["findings"]
    assert done.stderr.count("cannot keep images in ") == 1
    assert f"cannot keep images in {tmp_path}/im: No space left on device" in done.stderr
    assert not any(finding["image"] for finding in found["findings"])


#: Lines that no fence follows: many images, at one failure point.
UNFENCED = """
#include <libpmem.h>
#include <stdint.h>
int main(int argc, char **argv) {
  volatile uint64_t *words = pmem_map_file(argv[argc - 1], 1 << 16, PMEM_FILE_CREATE, 0600, 0, 0);
  for (int i = 0; i < 200; ++i) words[8 * i] = i + 1;
  return 0;
}
"""


def test_what_is_left_after_ctrl_c_is_an_upper_bound(tmp_path: Path) -> None:
    program = compile_c(tmp_path, "unfenced", UNFENCED, "-lpmem")
    marks = tmp_path / "marks"
    checker = f"sh -c 'echo >> {marks}; sleep 0.02'"
    flags = ["--checker", checker, "--json", "-"]
    with subprocess.Popen(
        [sys.executable, "-m", "nearfar.cli.app", "crash", "run", *flags, "--", program, "pool"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        while not (marks.exists() and len(marks.read_text()) > 20):
            assert child.poll() is None
            time.sleep(0.05)
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=600)
    assert child.returncode == 130, err
    found = json.loads(out)
    assert found["states"] > 10
    assert found["failure_points"] >= 1
    assert found["states_left"] >= 2.0**200 - found["states"]


def test_a_slow_program_is_not_said_to_hang(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    text = BUGGY.replace("  for (uint64_t v", "  usleep(1500000);\n  for (uint64_t v")
    program = compile_c(tmp_path, "journal", "#include <unistd.h>\n" + text, "-lpmem")
    done = run_nearfar("crash", "run", "--time", "1", "--", str(program), str(tmp_path / "pool"))
    done.assert_refused(3, "the program did not end within the limit of 1 s (--time)")
    assert "give a larger --time" in done.stderr
