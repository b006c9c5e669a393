"""Leave the placement of pages to the kernel: NUMA balancing in tiering mode, with demotion.

Hot pages on a slow node are promoted, and cold pages of a full fast node are demoted instead of
swapped. Both are settings of the whole machine.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nearfar.errors import MachineError
from nearfar.place.attached.kernel_moves import BALANCING, DEMOTION

#: Documentation/admin-guide/sysctl/kernel.rst, "numa_balancing": NUMA_BALANCING_MEMORY_TIERING.
_TIERING_MODE = "2"
_MEMORY_NODES = "/sys/devices/system/node/has_memory"


@contextmanager
def kernel_tiering(root: Path = Path("/")) -> Iterator[None]:
    """Turn it on, and set what was there again at the end, also after an error.

    Raises MachineError if there is one memory node, if the kernel has no such mode (before
    Linux 5.18, or built without NUMA balancing), or without privileges.
    """
    nodes = _read(root, _MEMORY_NODES)
    if nodes.isdigit():
        raise MachineError(
            f"this machine has memory on node {nodes} only: the kernel has no pages to move",
            "leave out the variant kernel, or run on a machine with a far memory node",
        )
    before = {path: _read(root, path) for path in (BALANCING, DEMOTION)}
    try:
        _write(root, BALANCING, _TIERING_MODE)
        _write(root, DEMOTION, "true")
        yield
    finally:
        for path, value in before.items():
            _write(root, path, value)


def _read(root: Path, path: str) -> str:
    try:
        return (root / path.lstrip("/")).read_text().strip()
    except OSError as error:
        raise _unavailable(path, error) from None


def _write(root: Path, path: str, value: str) -> None:
    try:
        (root / path.lstrip("/")).write_text(value)
    except OSError as error:
        raise _unavailable(path, error) from None


def _unavailable(path: str, error: OSError) -> MachineError:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return MachineError(
            f"the variant kernel sets {path}: {error.strerror}",
            "run nearfar as root, or leave out the variant kernel",
        )
    return MachineError(
        f"this kernel cannot place pages by itself: {path}: {error.strerror}",
        "use Linux 5.18 or newer with NUMA balancing, or leave out the variant kernel",
    )
