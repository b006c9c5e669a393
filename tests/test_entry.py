"""The entry point of the executable."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder

import pytest

from nearfar.cli.entry import main


class _Interrupting(MetaPathFinder):
    """Ctrl-C arrives while the command line is imported."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "nearfar.cli.app":
            raise KeyboardInterrupt


def test_an_interrupt_during_the_imports_is_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "nearfar.cli.app", raising=False)
    monkeypatch.setattr(sys, "meta_path", [_Interrupting(), *sys.meta_path])
    assert main() == 130
    assert capsys.readouterr() == ("", "nearfar: interrupted\n")
