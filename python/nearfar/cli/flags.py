"""Flags that have the same meaning in every verb."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from nearfar.cli import ranges
from nearfar.errors import BadInputError
from nearfar.files import require_place
from nearfar.units import parse_cpus, parse_seconds, parse_size
from nearfar.workflows.recording import Kept


class StencilVersion(StrEnum):
    """How a side accesses border rows of the other side."""

    DIRECT = "direct"
    GHOST = "ghost"


Version = Annotated[
    StencilVersion, typer.Option("--version", help="Border rows: read directly, or ghost copies.")
]


def writable(target: str | Path | None) -> str | Path | None:
    """For flags that name an output file: refuse an unwritable one before the work starts."""
    if target is not None and str(target) != "-":
        require_place(Path(target), "name a file in an existing, writable directory")
    return target


def _checked(parse: Callable[[str], object]) -> Callable[[str | None], str | None]:
    """For flags whose text is parsed later: refuse invalid text before the work starts."""

    def check(text: str | None) -> str | None:
        if text is not None:
            parse(text)
        return text

    return check


a_size, a_time, a_cpu_list = _checked(parse_size), _checked(parse_seconds), _checked(parse_cpus)

Json = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE|-",
        help="Write the result as JSON; - is standard output.",
        callback=writable,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notes.")]
OneTier = Annotated[
    str, typer.Option("--tier", metavar="TIER", help="Tier: dram, numa:1, shm:, file:DIR, …")
]
Near = Annotated[str, typer.Option("--near", metavar="TIER", help="Near tier: dram, numa:0, …")]
Far = Annotated[
    str, typer.Option("--far", metavar="TIER", help="Far tier: numa:1, fsdax:DIR, shm:, …")
]
Threads = Annotated[
    list[int] | None,
    typer.Option(
        "--threads",
        metavar="N",
        min=1,
        max=ranges.MOST_THREADS,
        help="Threads; repeat for several.",
    ),
]
Cpus = Annotated[
    str | None,
    typer.Option("--cpus", metavar="LIST", help="CPUs to use, such as 0-3,8.", callback=a_cpu_list),
]
Size = Annotated[
    str | None,
    typer.Option(
        "--size", metavar="SIZE", help="Bytes (of each array), such as 256MiB.", callback=a_size
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="TIME",
        help="Time limit of the measurement, such as 10 or 2min (default unit: s).",
        callback=a_time,
    ),
]
Runs = Annotated[
    int | None,
    typer.Option(
        "--runs",
        metavar="N",
        min=1,
        max=ranges.MOST_REPEATS,
        help="Number of repeats (default: as many as the precision requires).",
    ),
]
Warmup = Annotated[
    int,
    typer.Option(
        "--warmup",
        metavar="N",
        min=0,
        max=ranges.MOST_REPEATS,
        help="Warm-up repeats, not counted.",
    ),
]
Seed = Annotated[
    int,
    typer.Option("--seed", metavar="N", min=0, max=ranges.MOST_SEED, help="Seed of random orders."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 4 if the run was disturbed.")]
#: Value of a context's object: a verb that supports it checks its combination of flags, and stops.
CHECK_ALONE = object()

DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be measured, and stop.")]


def record_place(path: Path | None) -> Path | None:
    """Refuse a directory of a record below something that is not a directory, before any work."""
    above = next((p for p in path.parents if os.path.lexists(p)), None) if path else None
    if above is not None and not above.is_dir():
        raise BadInputError(f"--out {path}: {above} is not a directory", "name another directory")
    return path


Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Directory of the record (default: nearfar-runs/…).",
        callback=record_place,
    ),
]
NearThreads = Annotated[
    int,
    typer.Option(
        "--near-threads",
        metavar="D",
        min=1,
        max=ranges.MOST_THREADS,
        help="Threads on the near side.",
    ),
]
FarThreads = Annotated[
    int,
    typer.Option(
        "--far-threads",
        metavar="V",
        min=1,
        max=ranges.MOST_THREADS,
        help="Threads on the far side.",
    ),
]
MaybeNearThreads = Annotated[
    int | None,
    typer.Option(
        "--near-threads",
        metavar="D",
        min=1,
        max=ranges.MOST_THREADS,
        help="Threads on the near side.",
    ),
]
MaybeFarThreads = Annotated[
    int | None,
    typer.Option(
        "--far-threads",
        metavar="V",
        min=1,
        max=ranges.MOST_THREADS,
        help="Threads on the far side.",
    ),
]
Calibrate = Annotated[
    str | None, typer.Option("--calibrate", metavar="CAL.csv", help="Measured row of this work.")
]


@dataclass(frozen=True)
class Measuring:
    """The flags of every verb that measures."""

    cpus: Cpus = None
    time: Time = None
    runs: Runs = None
    warmup: Warmup = 0
    seed: Seed = 1
    out: Out = None
    json: Json = None
    strict: Strict = False
    quiet: Quiet = False

    @property
    def kept(self) -> Kept:
        """Return the fields that the record stores."""
        return Kept(self.seed, self.out, self.strict, self.quiet)

    def budget_s(self, default: float) -> float:
        """Return the seconds to measure: --time, or the verb's default."""
        return parse_seconds(self.time) if self.time is not None else default


def grouped(verb: Callable[..., None]) -> Callable[..., None]:
    """Expand each dataclass parameter of a verb into one flag per field.

    Typer reads flags from a function's signature. The returned function has one parameter per field
    and passes the fields to the verb as one object.
    """
    parameters = inspect.signature(verb, eval_str=True).parameters.values()
    groups: dict[str, type[Any]] = {
        p.name: p.annotation
        for p in parameters
        if isinstance(p.annotation, type) and is_dataclass(p.annotation)
    }
    flat = [
        flag for p in parameters for flag in (_flags(groups[p.name]) if p.name in groups else [p])
    ]

    @wraps(verb)
    def with_flags(**given: Any) -> None:
        for name, group in groups.items():
            flags = [field.name for field in fields(group) if field.name in given]
            given[name] = group(**{flag: given.pop(flag) for flag in flags})
        verb(**given)

    with_flags.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    with_flags.__annotations__ = {p.name: p.annotation for p in flat}
    return with_flags


def _flags(group: type[Any]) -> list[inspect.Parameter]:
    """Return a parameter for each field of a dataclass."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=hints[field.name],
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
        )
        for field in fields(group)
    ]
