"""Fixtures of tests: running the tool as a user would."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import running
import stored_host

# Another machine is slower, and busy: the time that an example takes does not fail it.
settings.register_profile("nearfar", deadline=None)
settings.load_profile("nearfar")

# Where tests were started in the background, Ctrl-C is ignored, and programs would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Outcome:
    """Result of one run of the tool: exit code and the two streams."""

    code: int
    stdout: str
    stderr: str

    def assert_refused(self, code: int, fragment: str) -> None:
        """One message with a next step, which holds ``fragment``; no traceback, nothing on stdout.

        A flag that is misspelt is refused too: unless the test says so, that is not what it meant.
        """
        assert self.code == code, self
        assert fragment in self.stderr.replace("\n", " "), self
        for wrong_use in ("No such option", "unexpected extra argument", "No such command"):
            assert wrong_use in fragment or wrong_use not in self.stderr, self
        assert "\n  next: " in self.stderr, self
        assert "Traceback" not in self.stderr, self
        assert self.stdout == "", self


@pytest.fixture(scope="session", autouse=True)
def _own_data_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test reads or writes what the user's nearfar measured: all have the same fixed host."""
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("data"))
    stored_host.store()


RunNearfar = Callable[..., Outcome]
Printed = Callable[[], Any]

#: Modules whose functions compile, start or trace programs.
_STARTERS = {
    "compiling",
    "crashing",
    "documents",
    "hmalloc_build",
    "pmdk",
    "running",
    "subprocess",
    "tracing",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests that start programs, by what they and their modules use."""
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        used = vars(item.module).values()
        modules = {getattr(each, "__module__", None) for each in used}
        modules |= {getattr(each, "__name__", None) for each in used}
        if modules & _STARTERS or "run_nearfar" in item.fixturenames:
            item.add_marker("starts_programs")


_CHANGES_OUTPUT = {
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "PY_COLORS",
    "TERMINAL_WIDTH",
    "LINES",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
    "GITHUB_ACTIONS",
}


def without_output_settings() -> dict[str, str]:
    """The environment of the tests, less what would change widths and colors."""
    return {k: v for k, v in os.environ.items() if k not in _CHANGES_OUTPUT}


@pytest.fixture
def run_nearfar(tmp_path: Path) -> RunNearfar:
    """``run_nearfar("topo", "--json", "-", cwd=..., env={...})``, by default in an empty folder.

    ``prepare`` replaces measurements by fixed ones in the process of the run (fixed_inputs.py).

    The environment is that of the tests, without what would change widths and colors.
    """

    def run(
        *arguments: str,
        env: dict[str, str] | None = None,
        cwd: Path = tmp_path,
        timeout: int = 600,
        prepare: running.Prepare | None = None,
    ) -> Outcome:
        settings = {**without_output_settings(), "COLUMNS": "80", "TERM": "dumb", **(env or {})}
        return Outcome(*running.run(arguments, settings, cwd, timeout, prepare))

    return run


@pytest.fixture
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """Returns what was written to the standard streams since its last call."""
    return capsys.readouterr
