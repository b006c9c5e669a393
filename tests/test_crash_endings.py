"""How ``crash run`` and ``crash lint`` end: what they say, and their exit codes."""

from __future__ import annotations

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
