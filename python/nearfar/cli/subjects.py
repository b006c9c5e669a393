"""What ``show`` and ``compare`` take: a record, a profile or a host, by name or by path."""

from __future__ import annotations

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


def compared(a: Subject, b: Subject) -> Comparison:
    """The figures of ``b`` against those of ``a``; BadInputError unless both are of one kind."""
    from nearfar.records.compare import compare_runs, compare_sheets
    from nearfar.records.profile import Datasheet
    from nearfar.records.run import Run

    if isinstance(a, Run) and isinstance(b, Run):
        return compare_runs(now=b, before=a)
    if isinstance(a, Datasheet) and isinstance(b, Datasheet) and a.kind == b.kind:
        return compare_sheets(now=b, before=a)
    raise BadInputError(
        f"a {_kind(a)} and a {_kind(b)} cannot be compared",
        "give two runs, two device profiles or two hosts",
    )


def _kind(subject: Subject) -> str:
    from nearfar.records.run import Run

    return "run" if isinstance(subject, Run) else f"{subject.kind} profile"
