"""Which plug-in the installed emulator loads, and what is reported if it loads none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conftest import Printed
from nearfar.cli.app import main
from nearfar.errors import MachineError
from nearfar.process.helpers import shipped
from nearfar.tracing.recording import plugin_for, plugin_for_emulator


@pytest.mark.parametrize(
    ("version", "api"), [((6, 0), 1), ((7, 2), 1), ((8, 2), 1), ((9, 1), 3), ((10, 0), 3)]
)
def test_each_version_has_a_plug_in(version: tuple[int, int], api: int) -> None:
    name = plugin_for(version)
    assert name == f"libnearfar-trace-qemu{api}.so"
    assert shipped(name).is_file()


@pytest.mark.parametrize("version", [(0, 0), (5, 2), (9, 0)])
def test_other_versions_are_refused(version: tuple[int, int]) -> None:
    with pytest.raises(MachineError, match="is not supported"):
        plugin_for(version)


def _emulator(folder: Path, help_text: str, version: str) -> None:
    script = folder / "qemu-x86_64"
    script.write_text(
        f'#!/bin/sh\ncase $1 in --help) echo "{help_text}";; *) echo "{version}";; esac\n'
    )
    script.chmod(0o755)


def test_the_emulator_is_asked_for_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    _emulator(tmp_path, "-plugin file", "qemu-x86_64 version 10.1.2 (a distribution)")
    assert plugin_for_emulator() == "libnearfar-trace-qemu3.so"
    _emulator(tmp_path, "-plugin file", "no figures")
    with pytest.raises(MachineError, match=r"version 0\.0 .* not supported"):
        plugin_for_emulator()


def test_an_emulator_without_plug_ins_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    _emulator(tmp_path, "-strace", "qemu-x86_64 version 10.0.13 (Debian)")
    assert main(["trace", "-o", str(tmp_path / "t"), "--", "true"]) == 3
    message = printed().err
    assert "built without plug-ins" in message
    assert "--recorder instrumented" in message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["qemu-x86_64"]
