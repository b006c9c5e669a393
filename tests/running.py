"""The tool run as a user would run it, without waiting for its imports each time.

A server process imports all of nearfar once and runs nothing; every run is a fork of it, so that
runs share imported modules and no state. What environment variables change while modules are
imported, and the start of the interpreter itself, need a process of their own.
"""

from __future__ import annotations

import multiprocessing
import os
import pkgutil
import subprocess
import sys
import tempfile
from multiprocessing.context import ForkServerContext
from pathlib import Path

import nearfar

#: Read by Typer, rich or the interpreter when they start.
_READ_AT_START = ("PYTHON", "LD_", "NO_COLOR", "FORCE_", "CLICOLOR", "TTY_", "TERMINAL_", "GITHUB_")


def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    found = pkgutil.walk_packages(nearfar.__path__, "nearfar.")
    context.set_forkserver_preload([module.name for module in found])
    return context


_SERVER = _server()


def _run(arguments: tuple[str, ...], env: dict[str, str], cwd: Path, streams: list[str]) -> None:
    """In the fork: become ``nearfar ARGUMENTS``."""
    from nearfar.cli.main import main

    for descriptor, path in enumerate(streams, start=1):
        file = os.open(path, os.O_WRONLY | os.O_TRUNC)
        os.dup2(file, descriptor)
        os.close(file)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.exit(main(list(arguments)))


def run(
    arguments: tuple[str, ...], env: dict[str, str], cwd: Path, timeout: float
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error. Raises TimeoutExpired."""
    if any(key.startswith(_READ_AT_START) and os.environ.get(key) != env[key] for key in env):
        done = subprocess.run(
            [sys.executable, "-m", "nearfar.cli.main", *arguments], env=env, cwd=cwd,
            capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        child = _SERVER.Process(target=_run, args=(arguments, env, cwd, [out.name, err.name]))
        child.start()
        child.join(timeout)
        if child.exitcode is None:
            child.kill()
            child.join()
            raise subprocess.TimeoutExpired(arguments, timeout)
        return child.exitcode, out.read().decode(), err.read().decode()
