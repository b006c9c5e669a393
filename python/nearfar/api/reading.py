"""Read, list, import, write and compare records and profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.api._common import public

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nearfar.records.choices import OtherTool
    from nearfar.records.profile import Profile
    from nearfar.records.profile_list import ListedProfile
    from nearfar.workflows.comparing import ComparisonVerdict
    from nearfar.workflows.subjects import Subject


@public
def load(name_or_path: str) -> Subject:
    """Load a run record, the JSON result of a verb, a device profile, or a host profile."""
    from nearfar.workflows import subjects

    return subjects.load(name_or_path)


@public
def import_profile(
    files: Sequence[Path], name: str, tool: OtherTool | None = None, nodes: str | None = None
) -> Profile:
    """Make a device profile from outputs of Mess (memory_curves.csv), Intel MLC and STREAM.

    ``nodes``: NUMA nodes of CPUs and memory, such as ``0:1``, required for outputs of MLC that have
    several. Raises BadInputError for a file that is none of these, or is damaged.
    """
    from nearfar.workflows import profile_files

    return profile_files.import_profile(files, name, tool, nodes)


@public
def list_profiles() -> list[ListedProfile]:
    """List device profiles and hosts: those that are shipped, and hosts measured by this user."""
    from nearfar.profiles import listing

    return listing.listed()


@public
def write_profile(profile: Profile, file: Path) -> Path:
    """Write a device profile to a new file, and return its path. Raises BadInputError if it
    exists."""
    from nearfar.workflows import profile_files

    return profile_files.write_new_profile(profile, file)


@public
def compare(*sides: str, threshold: float = 0.05, tiers: Sequence[str] = ()) -> ComparisonVerdict:
    """Compare the last side with the others; ``worse`` says whether a figure got worse.

    Sides: runs, profiles, hosts or JSON documents of the same kind, by name or path.
    ``threshold``: the largest accepted degradation, as a fraction. ``tiers``: two tiers to compare,
    such as ``dram`` and ``dram,pages=thp``. The second one of the last run is compared with the
    first one of the other runs; if only one run is given, with the first one of that run.
    """
    from nearfar.workflows import comparing

    return comparing.compare(sides, threshold, tiers)
