"""Checks and tiers shared by benchmarks on persistent pools."""

from __future__ import annotations

from pathlib import Path

from nearfar import _native
from nearfar.errors import BadInputError, MachineError
from nearfar.process.helpers import WITH_LIBPMEMOBJ
from nearfar.records.persistent_structures import OWN_MAPS


def require_pools() -> None:
    """Raise MachineError if the native core was built without libpmemobj."""
    if not hasattr(_native, "MapBench"):
        raise MachineError(
            "this nearfar was built without libpmemobj, which pools are made with",
            WITH_LIBPMEMOBJ,
        )


def place(tier: str) -> str:
    """The tier in which measurements create unnamed pools; its memory is populated in advance.

    If ``tier`` names a file, its directory is used. Raises BadInputError for tiers that cannot hold
    pools at all, or not with this pace or page size.
    """
    parsed = _native.parse_tier(tier)
    kind = parsed["kind"]
    if not parsed["holds_pools"]:
        raise BadInputError(
            f"tier {tier} cannot hold a pool: it has no files",
            "use shm:, numa:N, fsdax:DIR, devdax:DEVICE or file:DIR",
        )
    if parsed["profile"] or parsed["pages"] != "system":
        raise BadInputError(
            f"a pool on {tier} would have neither pace nor page size of its own",
            "name the tier without paced: and pages=",
        )
    if parsed["maps"] != "file":
        return f"{kind}:{parsed['path'] or parsed['node']},populate"
    path = Path(parsed["path"])
    folder = path if path.is_dir() else path.parent
    if not folder.is_dir():
        raise BadInputError(
            f"no directory {folder} for a pool on {tier}",
            "make it, or name another in --tier",
        )
    return f"{kind}:{folder},populate"


def is_volatile(type_: str, tier: str) -> bool:
    """Whether a map of this type on this tier is a volatile counterpart, without a pool."""
    if type_ in OWN_MAPS:
        return type_ == "dram"
    return not _native.parse_tier(tier)["holds_pools"]


def kept_file(tier: str, name: str) -> Path:
    """The file of --keep: the one that the tier names, or ``name`` in its directory.

    Raises BadInputError if it exists, and for tiers without files.
    """
    parsed = _native.parse_tier(tier)
    if parsed["maps"] != "file" or not parsed["holds_pools"]:
        raise BadInputError(
            f"tier {tier} has no files to leave a pool in",
            "leave --keep out, or use shm:, fsdax:DIR or file:DIR",
        )
    path = Path(parsed["path"])
    file = path / name if path.is_dir() else path
    if file.exists():
        raise BadInputError(
            f"{file} exists", "remove it, or name another file in --tier, such as shm:/dev/shm/a"
        )
    return file
