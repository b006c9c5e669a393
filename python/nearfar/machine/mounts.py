"""Mounted file systems, and the disks below them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from nearfar.machine.root import Root


@dataclass(frozen=True)
class Mount:
    """One line of ``/proc/self/mounts``."""

    source: str
    point: str
    file_system: str
    options: list[str]

    @property
    def dax(self) -> bool:
        """Whether files map the medium directly (``dax`` or ``dax=always``)."""
        return "dax" in self.options or "dax=always" in self.options


def _unescape(text: str) -> str:
    """Decode the kernel's octal escapes of spaces, tabs, newlines and backslashes."""
    for code, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, plain)
    return text


def read_mounts(root: Root) -> list[Mount]:
    """All mounts, in mount order."""
    mounts = []
    for line in (root.text("proc/self/mounts") or "").splitlines():
        fields = line.split()
        if len(fields) >= 4:
            source, point, file_system, options = (_unescape(field) for field in fields[:4])
            mounts.append(Mount(source, point, file_system, options.split(",")))
    return mounts


def mount_of(path: Path, mounts: list[Mount]) -> Mount | None:
    """The mount that holds an absolute path: the deepest one, and the latest of several."""
    place = PurePosixPath(path)
    holders = [m for m in mounts if place.is_relative_to(m.point)]
    return max(reversed(holders), key=lambda m: len(m.point), default=None)


@dataclass(frozen=True)
class Disk:
    """A block device; ``rotational`` is None if the kernel does not report it."""

    name: str
    rotational: bool | None

    def words(self, virtual: bool) -> str:
        """A description such as ``sda, SSD``; the medium of a virtual disk is unknown."""
        if virtual:
            return f"{self.name}, a virtual disk"
        if self.rotational is None:
            return self.name
        return f"{self.name}, {'rotating disk' if self.rotational else 'SSD'}"


def disk_of(root: Root, mount: Mount) -> Disk | None:
    """The disk below a mount; for a partition, its whole disk. None if there is none."""
    if not mount.source.startswith("/dev/"):
        return None
    name = Path(root.real(mount.source.lstrip("/"))).name
    path = root.real(f"sys/class/block/{name}")
    for place in (path, str(PurePosixPath(path).parent)):
        rotational = root.number(f"{place}/queue/rotational")
        if rotational is not None:
            return Disk(name, bool(rotational))
    return Disk(name, None)
