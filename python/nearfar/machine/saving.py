"""Save a machine in a directory from which ``machine_from`` reads it again, without private names.

Saved are the files of ``saved_files``, hwloc's XML as ``saved_xml`` reduces it, and three facts
that are written anew because their files hold names: mounts, DMI names and links of buses. A mount
of persistent memory at ``/srv/customer`` is saved as ``/mnt/pmem0``.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from nearfar import _native
from nearfar.errors import BadInputError, MachineError
from nearfar.machine import hypervisor
from nearfar.machine.model import Machine
from nearfar.machine.mounts import read_mounts
from nearfar.machine.root import Root
from nearfar.machine.saved_files import DEVICES, FILES, TABLES, Reduction, devices_of
from nearfar.machine.saved_xml import anonymized

_NEXT = "name a new or empty directory after --save"


@dataclass
class Saved:
    """Content of the directory, and the files of this machine that could not be read."""

    files: dict[str, bytes] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    links: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)


def _save_matches(root: Root, pattern: str, reduction: Reduction, saved: Saved) -> None:
    for found in sorted(root.path.glob(pattern)):
        name = str(found.relative_to(root.path))
        look = root.look(name)
        if look.text is not None:
            saved.files[name] = (reduction(look.text) + "\n").encode()
        else:
            saved.unread.append(look.trouble)


def _save_devices(root: Root, saved: Saved) -> None:
    for bus in DEVICES:
        for name, files in devices_of(bus, root.names(bus)):
            link = f"{bus}/{name}"
            real = root.real(link).lstrip("/")
            if not (root.path / real).is_dir():
                continue  # a link that leads out of a described machine
            saved.folders.add(real)
            if real != link:
                saved.links[link] = os.path.relpath(real, bus)
            for pattern, reduction in files.items():
                _save_matches(root, f"{real}/{pattern}", reduction, saved)


def _save_tables(root: Root, saved: Saved) -> None:
    for name in TABLES:
        try:
            saved.files[name] = (root.path / name).read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            saved.unread.append(f"/{name}: {error.strerror}")


def _mounts(root: Root, machine: Machine) -> str:
    """Mounts that are tiers: of persistent memory by device, and of tmpfs."""
    types = {mount.source: mount.file_system for mount in read_mounts(root)}
    lines = [
        f"/dev/{space.device} /mnt/{space.device} {types[f'/dev/{space.device}']} "
        f"{'rw,dax=always' if space.dax else 'rw'} 0 0"
        for region in machine.pmem_regions
        for space in region.namespaces
        if space.mount
    ]
    for tier in machine.tiers:
        if tier.spec == "shm:":
            size = f",size={tier.capacity_bytes >> 10}k" if tier.capacity_bytes else ""
            lines.append(f"tmpfs /dev/shm tmpfs rw{size} 0 0")
    return "".join(f"{line}\n" for line in lines)


def collect(root: Root, machine: Machine) -> Saved:
    """Read what is saved of a machine. Raises NativeError if hwloc cannot describe it."""
    saved = Saved()
    xml = _native.topology_xml(None if root.live else str(root.path / "hwloc.xml"))
    saved.files["hwloc.xml"] = anonymized(xml).encode()
    for pattern, reduction in FILES.items():
        _save_matches(root, pattern, reduction, saved)
    _save_devices(root, saved)
    _save_tables(root, saved)
    saved.files["proc/self/mounts"] = _mounts(root, machine).encode()
    maker = hypervisor.firmware_name(machine.virtual_machine)
    if maker:
        saved.files["sys/class/dmi/id/sys_vendor"] = f"{maker}\n".encode()
    saved.folders.add("sys")
    return saved


def require_empty(directory: Path) -> None:
    """Raises BadInputError unless the directory is new or empty."""
    if os.path.lexists(directory):
        if not directory.is_dir():
            raise BadInputError(f"{directory} is not a directory", _NEXT)
        if any(directory.iterdir()):
            raise BadInputError(f"{directory} is not empty", _NEXT)


def _write_all(saved: Saved, directory: Path) -> None:
    for folder in saved.folders:
        (directory / folder).mkdir(parents=True, exist_ok=True)
    for name, content in saved.files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
    for name, target in saved.links.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).symlink_to(PurePosixPath(target))


def _remove(directory: Path, was_there: bool) -> None:
    if not was_there:
        shutil.rmtree(directory, ignore_errors=True)
        return
    for entry in directory.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink()


def write(saved: Saved, directory: Path) -> None:
    """Write into a new or empty directory: everything, or nothing on an error or interruption.

    Raises BadInputError for a directory with content, MachineError where it cannot be written.
    """
    require_empty(directory)
    was_there = directory.exists()
    try:
        if not was_there:
            directory.mkdir()
    except OSError as error:
        raise MachineError(f"cannot make {directory}: {error.strerror}", _NEXT) from None
    try:
        _write_all(saved, directory)
    except BaseException as error:
        _remove(directory, was_there)
        if isinstance(error, OSError):
            raise MachineError(f"cannot write {directory}: {error.strerror}", _NEXT) from None
        raise
