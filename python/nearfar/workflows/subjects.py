"""Load subjects of ``show`` and ``compare``: record, answer, profile or host, by name or path."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from nearfar.comparison.changes import Comparison
    from nearfar.records.profile import Host, Profile
    from nearfar.records.run import Run

    Subject = Profile | Host | Run | BaseModel


def load(name_or_path: str) -> Subject:
    """Load a profile, a host, a record, or the JSON document of a verb that keeps no record.

    Tried in this order: the name of a shipped profile or host; a ``.toml`` file; a JSON file (a
    ``run.json`` or a document); a directory (of a run, or of a sweep's cell with a document).

    Raises BadInputError for an unknown format, for a damaged file, and for a shipped name that is
    also a path here.
    """
    from nearfar.profiles import host_names, load_host, load_profile, profile_names
    from nearfar.profiles.sheets import read_datasheet
    from nearfar.records.answer import answer_of, is_answer
    from nearfar.store import document_file, read_document, run_of

    path = Path(name_or_path)
    is_profile, is_host = name_or_path in profile_names(), name_or_path in host_names()
    if (is_profile or is_host) and path.exists():
        raise BadInputError(
            f"{name_or_path} is a shipped {'profile' if is_profile else 'host'}, and a path here",
            f"write ./{name_or_path} for the path, or name the other from another directory",
        )
    if is_profile:
        return load_profile(name_or_path)
    if is_host:
        return load_host(name_or_path)
    if path.suffix == ".toml":
        return read_datasheet(path)
    if not _exists(path):
        raise BadInputError(
            f"no record, profile or host {name_or_path}",
            f"give a run directory, such as nearfar-runs/…, a .toml file, or one of: "
            f"{', '.join(profile_names() + host_names())}",
        )
    document = read_document(path)
    file = document_file(path)
    if is_answer(document) and "schema_version" not in document:  # only a record's JSON has it
        return answer_of(document, str(file), "compute it again")
    return run_of(document, file)


def _exists(path: Path) -> bool:
    """Whether it exists. Raises BadInputError if it is not accessible, or not a valid name."""
    try:
        return path.exists()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInputError(
            f"cannot look at {path}: {reason}", "give a path that you may read"
        ) from None


def compared(base: Sequence[Subject], now: Subject) -> Comparison:
    """Compare the figures of one subject with those of runs, or of one profile or answer.

    Raises BadInputError for different kinds, and for several profiles.
    """
    from nearfar.comparison.matching import compare_answers, compare_runs, compare_sheets
    from nearfar.records.profile import Datasheet
    from nearfar.records.run import Run

    runs = [side for side in base if isinstance(side, Run)]
    if isinstance(now, Run) and len(runs) == len(base):
        return compare_runs(now=now, before=runs)
    first = next((side for side in base if _kind(side) != _kind(now)), None)
    if first is None and len(base) > 1:
        raise BadInputError(
            f"cannot compare with several {_kind(now)}s: only runs are taken together",
            "give two files or names",
        )
    if isinstance(now, Datasheet) and isinstance(base[0], Datasheet) and first is None:
        return compare_sheets(now=now, before=base[0])
    if first is None:
        return compare_answers(now=now, before=base[0])
    raise BadInputError(
        f"a {_kind(first)} and a {_kind(now)} cannot be compared",
        "give two runs, two device profiles, two hosts or two JSON files of the same verb",
    )


def _kind(subject: Subject) -> str:
    from nearfar.records.profile import Datasheet
    from nearfar.records.run import Run

    if isinstance(subject, Datasheet):
        return f"{subject.kind} profile"
    return "run" if isinstance(subject, Run) else "result without a record"
