"""When virtual machines of tests use KVM, with a QEMU that a test writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vm import accelerator


@pytest.mark.parametrize(
    ("qemu", "accessible", "works"),
    [
        ("exit 0", True, True),
        ("exit 1", True, False),  # cannot create a machine
        ("exec sleep 60", True, False),  # nested, and too slow to boot
        ("exit 0", False, False),
    ],
)
def test_kvm_is_used_if_a_kernel_boots(
    qemu: str, accessible: bool, works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "qemu-system-x86_64"
    program.write_text(f"#!/bin/sh\n{qemu}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(os, "access", lambda *_: accessible)
    monkeypatch.setattr(accelerator, "_LIMIT_S", 1.0)
    accelerator.kvm_works.cache_clear()
    options = accelerator.processor_options(tmp_path / "vmlinuz")
    accelerator.kvm_works.cache_clear()
    assert ("kvm" in options) == works
