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
from collections.abc import Callable, Mapping
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import nearfar

Prepare = Callable[[], None]

#: Read by Typer, rich or the interpreter when they start.
_READ_AT_START = ("PYTHON", "LD_", "NO_COLOR", "FORCE_", "CLICOLOR", "TTY_", "TERMINAL_", "GITHUB_")


def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    found = pkgutil.walk_packages(nearfar.__path__, "nearfar.")
    context.set_forkserver_preload([module.name for module in found])
    return context


_SERVER = _server()


#: Replacement of a standard stream: a file by its path, or None for a closed descriptor.
Streams = Mapping[int, str | None]


def _run(
    arguments: tuple[str, ...],
    env: dict[str, str],
    cwd: Path,
    streams: Streams,
    prepare: Prepare | None,
) -> None:
    """In the fork: become ``nearfar ARGUMENTS``."""
    from nearfar.cli.app import main

    for descriptor, path in streams.items():
        if path is None:
            os.close(descriptor)
            continue
        file = os.open(path, os.O_WRONLY | os.O_TRUNC)
        os.dup2(file, descriptor)
        os.close(file)
    # As the interpreter does when it starts.
    sys.stdout = _text_stream(1)
    sys.stderr = _text_stream(2)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    if prepare is not None:
        prepare()
    sys.exit(main(list(arguments)))


def _text_stream(descriptor: int) -> Any:
    """Text on a standard descriptor, None where it is closed."""
    try:
        return open(
            descriptor, "w", encoding="utf-8", closefd=False, buffering=1 if descriptor == 2 else -1
        )
    except OSError:
        return None


def run(
    arguments: tuple[str, ...],
    env: dict[str, str],
    cwd: Path,
    timeout: float,
    prepare: Prepare | None = None,
    streams: Streams | None = None,
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error. Raises TimeoutExpired.

    ``prepare`` is called in the run's process before the command: it replaces what the run would
    measure by fixed values. It must be a function of a module, or a partial of one. ``streams``:
    what standard streams are instead of empty files.
    """
    if (
        prepare is None
        and not streams
        and any(key.startswith(_READ_AT_START) and os.environ.get(key) != env[key] for key in env)
    ):
        done = subprocess.run(
            [sys.executable, "-m", "nearfar.cli.app", *arguments],
            env=env,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        chosen = {1: out.name, 2: err.name, **(streams or {})}
        child = _SERVER.Process(target=_run, args=(arguments, env, cwd, chosen, prepare))
        child.start()
        child.join(timeout)
        if child.exitcode is None:
            child.kill()
            child.join()
            raise subprocess.TimeoutExpired(arguments, timeout)
        return child.exitcode, out.read().decode(), err.read().decode()
