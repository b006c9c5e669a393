"""Fixtures of tests in the virtual machine."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from vm import initramfs
from vm.machine import Machine, missing_packages

DEVICE = "/dev/dax0.0"
#: Linux 6.12; Debian 12 itself has 6.1, without weighted interleaving and tiers by HMAT.
NEWER_SUITE = "bookworm-backports"


@pytest.fixture(scope="session", autouse=True)
def _emulator() -> None:
    """Skip, and say why, where no machine can be started; `make test-vm` fails instead."""
    missing = missing_packages()
    reason = f"apt-get install {' '.join(missing)}" if missing else ""
    if not missing:
        try:
            initramfs.fetch_kernel()
        except RuntimeError as error:
            reason = str(error)
    if reason and os.environ.get("NEARFAR_VM") == "required":
        pytest.fail(f"no virtual machine here: {reason}", pytrace=False)
    if reason:
        pytest.skip(f"no virtual machine here: {reason}")


@pytest.fixture(scope="session")
def newer_kernel() -> str:
    """A suite of Debian with Linux 6.9 or later. Skips, and says why, where it cannot be fetched;
    `make test-vm` fails instead."""
    try:
        initramfs.fetch_kernel(NEWER_SUITE)
    except RuntimeError as error:
        if os.environ.get("NEARFAR_VM") == "required":
            pytest.fail(f"no newer kernel: {error}", pytrace=False)
        pytest.skip(f"no newer kernel: {error}")
    return NEWER_SUITE


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """One machine for all tests that leave it running."""
    with Machine(tmp_path_factory.mktemp("machine")) as started:
        yield started


def print_figure(name: str, part: float, total: float) -> None:
    """A fraction for `benchmarks/results`: shown with `pytest -s`."""
    print(f"figure: {name}: {part / total:.2%} of {total:,.0f}")


def make_fsdax(machine: Machine, file_system: str = "ext4") -> None:
    """A namespace over the whole NVDIMM, a new file system, mounted at /mnt/pmem."""
    machine.run("umount /mnt/pmem")
    machine.run("ndctl create-namespace -f -e namespace0.0 -m fsdax --map=mem").ok()
    options = {"ext4": "-q -F", "xfs": "-q -f -m reflink=0"}[file_system]
    machine.run(f"mkfs.{file_system} {options} /dev/pmem0").ok()
    mount(machine)


def make_devdax(machine: Machine) -> None:
    """The same NVDIMM as a device without a file system."""
    machine.run("umount /mnt/pmem")
    machine.run("ndctl create-namespace -f -e namespace0.0 -m devdax --map=mem").ok()


def mount(machine: Machine) -> None:
    """Mount what is on the namespace."""
    machine.run("mkdir -p /mnt/pmem && mount -o dax=always /dev/pmem0 /mnt/pmem").ok()
