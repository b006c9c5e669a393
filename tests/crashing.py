"""Programs compiled, recorded and crashed by ``nearfar crash run``."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from compiling import compile_c
from conftest import Outcome, RunNearfar
from documents import read
from nearfar.verify.recorder import compile_flags, link_flags

INCLUDE = f"-I{Path(__file__).parent.parent / 'include'}"
PROGRAMS = Path(__file__).parent / "programs"
#: The files of the tutorial, which tests/test_docs.py follows to its end.
SHOWN = dict(
    step
    for step in read(Path(__file__).parent.parent / "docs" / "tutorials" / "crash.md").steps
    if isinstance(step, tuple)
)
BUGGY = SHOWN["journal.c"]
FIXED = BUGGY.replace("// FIX", "pmem_persist(e, sizeof *e);")

_WITHOUT_LIBPMEMOBJ = not Path("/usr/include/libpmemobj.h").exists()
needs_libpmemobj = pytest.mark.skipif(_WITHOUT_LIBPMEMOBJ, reason="needs libpmemobj-dev")
# An explorer that was not built is a failure where libpmemobj is installed.
needs_explorer = pytest.mark.skipif(_WITHOUT_LIBPMEMOBJ, reason="needs libpmemobj-dev: no explorer")

needs_libpmem = pytest.mark.skipif(
    shutil.which("gcc") is None or not Path("/usr/include/libpmem.h").exists(),
    reason="needs gcc and libpmem-dev",
)


def document(done: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def lines_matching(name: str, pattern: str) -> list[str]:
    """FILE:LINE of the lines of a program of tests/programs in which a pattern is found."""
    lines = (PROGRAMS / f"{name}.c").read_text().splitlines()
    return [f"{name}.c:{n}" for n, line in enumerate(lines, 1) if re.search(pattern, line)]


def interrupted(
    program: Path, check: str, images: int, by: signal.Signals
) -> tuple[dict[str, Any], str]:
    """The document and the errors of ``crash run`` that gets a signal after more than so many
    images. ``check``: commands of a shell."""
    marks = program.with_name("marks")
    flags = ["--checker", f"sh -c 'echo >> {marks}; {check}'", "--json", "-"]
    with subprocess.Popen(
        [sys.executable, "-m", "nearfar.cli.app", "crash", "run", *flags, "--", program, "pool"],
        cwd=program.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        while not (marks.exists() and len(marks.read_text()) > images):
            assert child.poll() is None
            time.sleep(0.05)
        child.send_signal(by)
        out, err = child.communicate(timeout=600)
    assert child.returncode == 130, err
    return json.loads(out), err


def compiled_for(recorder: str, folder: Path, name: str, *flags: str) -> Path:
    """A program of tests/programs as the recorder requires it."""
    text = (PROGRAMS / f"{name}.c").read_text()
    library = "-lpmemobj" if "<libpmemobj.h>" in text else "-lpmem"
    if recorder == "preload":
        return compile_c(folder, name, text, *flags, library)
    source, part = folder / f"{name}.c", folder / f"{name}.o"
    source.write_text(text)
    compiling = ["gcc", "-O1", *shlex.split(compile_flags()), "-Wall", "-Werror", *flags]
    subprocess.run([*compiling, "-c", source, "-o", part], check=True)
    program = folder / name
    linked = shlex.split(link_flags())
    subprocess.run(["gcc", part, "-o", program, *linked, library], check=True)
    return program


def judged(
    run: RunNearfar, verb: str, recorder: str, program: Path, *arguments: str
) -> dict[str, Any]:
    """The document of ``crash lint`` or ``crash run`` on a program and a new pool."""
    pool = program.with_name("pool")
    pool.unlink(missing_ok=True)
    flags = ("--recorder", recorder, "--json", "-")
    return document(run("crash", verb, *flags, "--", str(program), str(pool), *arguments))


def linted(run: RunNearfar, *command: str) -> dict[str, Any]:
    """The document of ``crash lint`` on a command."""
    return document(run("crash", "lint", "--json", "-", "--", *command))


def crash_run(
    run: RunNearfar, program: Path, checker: Path | str, *flags: str, json: str = "-"
) -> Outcome:
    pool = program.with_name("pool")
    pool.unlink(missing_ok=True)
    return run(
        "crash",
        "run",
        "--checker",
        str(checker),
        "--json",
        json,
        *flags,
        "--",
        str(program),
        str(pool),
    )
