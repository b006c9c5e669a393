"""Pools as files: examined, searched for leaks, overwritten; never opened as pools."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearfar.errors import BadInputError, ExitCode, MachineError, NearfarError

if TYPE_CHECKING:
    from nearfar._native import PoolExamination, PoolFacts, PoolLeaks, PoolShredded
    from nearfar.measure.progress import ProgressSource

_METHOD = "conservative: any aligned word that could be an offset into an object counts as a link"
_BY_TYPE = "typed objects by the links that the pool's types name; other blocks conservatively"
#: Parts of an examination that its JSON document has.
_PARTS = ("header", "descriptor", "typed", "logs", "heap", "runs", "types", "further_types")

_OTHERS = {
    "log": ("a pool of libpmemlog", "use pmempool info; only `pool shred` accepts it here"),
    "block": ("a pool of libpmemblk", "use pmempool info; only `pool shred` accepts it here"),
    "pool_set": ("a pool set: a list of files", "name a pool that is a single file"),
    "empty": ("an empty file", "name a pool that libpmemobj or nearfar made"),
    "other": ("not a pool", "name a pool that libpmemobj or nearfar made"),
}


def _require_pool(facts: PoolFacts, path: Path) -> None:
    """Raise BadInputError unless the file is a libpmemobj pool; a damaged one is accepted."""
    if facts["kind"] in _OTHERS:
        what, next_step = _OTHERS[facts["kind"]]
        raise BadInputError(f"{path} is {what}", next_step)


def _document(facts: Any, path: Path, **numbers: int) -> dict[str, Any]:
    """Return the JSON of a verb. ``numbers``: what was counted in the file, by key."""
    return {
        "file": str(path),
        "size_bytes": facts["size_bytes"],
        **numbers,
        "damage": facts["damage"],
        "notes": facts["notes"],
        "findings": facts["findings"],
        "provenance": dict.fromkeys(("size_bytes", *numbers, "damage", "notes"), "measured"),
    }


@dataclass(frozen=True)
class Examined:
    """A pool whose file was read as untrusted bytes."""

    file: Path
    facts: PoolExamination

    def exit_code(self) -> int:
        """1 if the pool is damaged."""
        return ExitCode.VIOLATION if self.facts["damage"] else ExitCode.OK

    def check_document(self) -> dict[str, Any]:
        """The JSON document of ``nearfar pool check``."""
        return _document(self.facts, self.file, objects=self.facts["all_objects"]["objects"])

    def info_document(self) -> dict[str, Any]:
        """The JSON document of ``nearfar pool info``."""
        counts = _document(
            self.facts,
            self.file,
            objects=self.facts["all_objects"]["objects"],
            object_block_bytes=self.facts["all_objects"]["block_bytes"],
            heap_bytes=self.facts["descriptor"]["heap_bytes"],
        )
        parts = (*_PARTS, "internal_objects")
        return {**counts, **{part: self.facts[part] for part in parts}}  # type: ignore[literal-required]


def examine(file: Path) -> Examined:
    """Read header, logs, heap and objects. Raises BadInputError for other files."""
    from nearfar._native import pool_examine

    facts = pool_examine(str(file))
    _require_pool(facts, file)
    return Examined(file, facts)


@dataclass(frozen=True)
class Leaks:
    """Objects of a pool that cannot be reached from its root."""

    file: Path
    facts: PoolLeaks

    @property
    def method(self) -> str:
        """The method by which links were found."""
        return _BY_TYPE if self.facts["by_type"] else _METHOD

    def exit_code(self) -> int:
        """1 if an object is lost."""
        return ExitCode.VIOLATION if self.facts["lost"] else ExitCode.OK

    def document(self) -> dict[str, Any]:
        """The JSON document of the verb."""
        counts = {key: self.facts[key] for key in ("objects", "lost", "lost_bytes")}
        head = _document(self.facts, self.file, **counts)
        return {**head, "method": self.method, "types": self.facts["types"]}


def find_leaks(file: Path) -> Leaks:
    """Follow links from the root. Raises if reachability has no meaning in this pool."""
    from nearfar._native import pool_leaks

    facts = pool_leaks(str(file))
    _require_pool(facts, file)
    _require_reachability(facts, file)
    return Leaks(file, facts)


def _require_reachability(facts: PoolLeaks, file: Path) -> None:
    """Raise if reachability has no meaning: damage, no root, or logs not replayed."""
    if facts["damage"]:
        first = next(one for one in facts["findings"] if one["severity"] == "damage")
        raise NearfarError(
            f"{file} is damaged: {first['what']} (at {first['offset']:#x})",
            f"run nearfar pool check {file}",
        )
    if not facts["descriptor"]["root_offset"]:
        raise BadInputError(
            f"{file} has no root object, so nothing in it can be reached",
            "its programs find objects by type (pmemobj_first): run nearfar pool info",
        )
    if not facts["replayed"]:
        raise MachineError(
            f"{file} holds unfinished transactions too large to be replayed here",
            "open it with its own program once, which recovers it",
        )


@dataclass(frozen=True)
class Shredded:
    """A file that was overwritten, and places where old data may remain."""

    file: Path
    done: PoolShredded
    not_reached: list[str]

    def document(self) -> dict[str, object]:
        """The JSON document of the verb."""
        done = self.done
        return {
            "file": str(self.file),
            "size_bytes": done["size_bytes"],
            "verified_bytes": done["size_bytes"],
            "verified_from": "page cache" if done["read_from_cache"] else "medium",
            "file_system": done["file_system"],
            "not_reached": self.not_reached,
            "provenance": {"size_bytes": "measured", "verified_bytes": "measured"},
        }


def shred(file: Path, progress: ProgressSource) -> Shredded:
    """Overwrite a pool with random bytes, flush it, read it back and compare."""
    from nearfar._native import pool_shred

    with progress() as shown:
        done = pool_shred(str(file), lambda at, of: shown.step("overwriting, reading", at / of))
    return Shredded(file, done, _unreached(done, file))


def _unreached(done: PoolShredded, file: Path) -> list[str]:
    """Return the places where old bytes may remain, according to the file system."""
    system = done["file_system"]
    remaining = []
    if done["copies_on_write"]:
        remaining.append(
            f"old blocks: {system} may keep what was overwritten, in shared extents or snapshots"
        )
    if done["in_memory"]:
        remaining.append(f"swap: {system} is in memory, and its pages may have been swapped out")
    if done["read_from_cache"]:
        remaining.append("the medium itself: what was compared came from memory")
    remaining.append(
        "blocks that an SSD or a memory module has remapped; encrypt, or destroy the device"
    )
    remaining.append(
        "snapshots of the volume or the machine, backups, replicas, and copies of the file"
    )
    if file.stat().st_nlink > 1:
        remaining.append("hard links to the file: its other names show the overwritten bytes")
    return remaining
