"""What ``show`` and ``compare`` take: a record, a profile or a host, by name or by path."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar.records.compare import Comparison
    from nearfar.records.profile import Host, Profile
    from nearfar.records.run import Run

    Subject = Profile | Host | Run


def load(name_or_path: str) -> Subject:
    """Shipped names first, then a ``.toml`` file, then a run directory or its ``run.json``.

    Raises BadInputError for what is none of these, and for what is damaged.
    """
    from nearfar.profiles import host_names, load_host, load_profile, profile_names
    from nearfar.profiles.sheets import read_datasheet
    from nearfar.store import read_run

    if name_or_path in profile_names():
        return load_profile(name_or_path)
    if name_or_path in host_names():
        return load_host(name_or_path)
    path = Path(name_or_path)
    if path.suffix == ".toml":
        return read_datasheet(path)
    if not _exists(path):
        raise BadInputError(
            f"there is no record, profile or host {name_or_path}",
            f"give a run directory, such as nearfar-runs/…, a .toml file, or one of: "
            f"{', '.join(profile_names() + host_names())}",
        )
    return read_run(path)


def _exists(path: Path) -> bool:
    """Raises BadInputError where one may not even look, or the name is no name."""
    try:
        return path.exists()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInputError(
            f"cannot look at {path}: {reason}", "give a path that you may read"
        ) from None


def compared(base: Sequence[Subject], now: Subject) -> Comparison:
    """The figures of one against those of others: of runs, or of one profile.

    Raises BadInputError for different kinds, and for several profiles.
    """
    from nearfar.records.compare import compare_runs, compare_sheets
    from nearfar.records.profile import Datasheet
    from nearfar.records.run import Run

    runs = [side for side in base if isinstance(side, Run)]
    if isinstance(now, Run) and len(runs) == len(base):
        return compare_runs(now=now, before=runs)
    first = next((side for side in base if _kind(side) != _kind(now)), None)
    if first is None and len(base) > 1:
        raise BadInputError("only of runs there may be several", "give two profiles, or two hosts")
    if isinstance(now, Datasheet) and isinstance(base[0], Datasheet) and first is None:
        return compare_sheets(now=now, before=base[0])
    raise BadInputError(
        f"a {_kind(first or base[0])} and a {_kind(now)} cannot be compared",
        "give two runs, two device profiles or two hosts",
    )


def _kind(subject: Subject) -> str:
    from nearfar.records.run import Run

    return "run" if isinstance(subject, Run) else f"{subject.kind} profile"
