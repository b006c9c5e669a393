"""The virtual machine's first file system: busybox, the modules it needs, ``tools/vm/init``.

Written as a cpio archive of the form "newc", which the kernel unpacks; the form is documented with
the kernel (Documentation/driver-api/early-userspace/buffer-format.rst).
"""

from __future__ import annotations

import lzma
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

TOOLS = Path(__file__).parent.parent.parent / "tools" / "vm"
MODULES = (
    "virtio_pci",
    "virtio_console",
    "9pnet_virtio",
    "9p",
    "overlay",
    "nfit",
    "libnvdimm",
    "nd_pmem",
    "nd_e820",
    "dax_pmem",
    "device_dax",
    "kmem",
    "crc32c_generic",
    "ext4",
    "xfs",
)
#: Of modules since Linux 6.6; busybox loads them unpacked.
_PACKED = ".xz"
_FOLDERS = ("bin", "dev", "host", "new", "proc", "sys", "top")


def build(kernel: Path, into: Path) -> Path:
    """Write the archive for an unpacked kernel package; returns its path. About a second."""
    version = (kernel / "ready").read_text().strip()
    modules = Path("lib/modules") / version
    entries: dict[str, tuple[int, bytes]] = {}
    for file in sorted(_closure(kernel / modules)):
        content = (kernel / modules / file).read_bytes()
        if file.endswith(_PACKED):
            content = lzma.decompress(content)
        entries[str(modules / file.removesuffix(_PACKED))] = (0o644, content)
    for index in ("modules.dep", "modules.order", "modules.builtin", "modules.alias"):
        text = (kernel / modules / index).read_bytes().replace(b".ko.xz", b".ko")
        entries[str(modules / index)] = (0o644, text)
    entries["bin/busybox"] = (0o755, Path("/bin/busybox").read_bytes())
    entries["init"] = (0o755, (TOOLS / "init").read_bytes())
    entries["agent"] = (0o644, (TOOLS / "agent").read_bytes())
    archive = into / "initramfs"
    archive.write_bytes(b"".join(_cpio(entries)))
    return archive


def _closure(modules: Path) -> set[str]:
    """Files of the wanted modules and of all that they need, as depmod found them."""
    needs: dict[str, list[str]] = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        file, _, others = line.partition(":")
        needs[file] = [file, *others.split()]
    by_name = {Path(file).name.split(".ko")[0].replace("-", "_"): file for file in needs}
    return {file for name in MODULES if name in by_name for file in needs[by_name[name]]}


def _cpio(entries: dict[str, tuple[int, bytes]]) -> Iterator[bytes]:
    folders = {str(p) for name in entries for p in Path(name).parents} - {"."}
    number = 0
    for name in sorted(folders | set(_FOLDERS)):
        number += 1
        yield _member(number, name, stat.S_IFDIR | 0o755, b"")
    for name, (mode, data) in entries.items():
        number += 1
        yield _member(number, name, stat.S_IFREG | mode, data)
    yield _member(0, "TRAILER!!!", 0, b"")


def _member(number: int, name: str, mode: int, data: bytes) -> bytes:
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + os.fsencode(name) + b"\0"
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def fetch_kernel(suite: str = "") -> Path:
    """The unpacked kernel package, of a suite of Debian's or the newest that this machine's package
    lists know. Raises RuntimeError with what is missing."""
    command = [str(TOOLS / "kernel"), *filter(None, [suite])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or "tools/vm/kernel failed")
    return Path(done.stdout.strip())
