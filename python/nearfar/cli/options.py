"""Flags that mean the same in every verb."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from nearfar.files import require_place


class StencilVersion(StrEnum):
    """How rows on the other side are reached."""

    DIRECT = "direct"
    GHOST = "ghost"


Version = Annotated[
    StencilVersion, typer.Option("--version", help="Border rows read across, or kept twice.")
]


def writable(target: str | Path | None) -> str | Path | None:
    """For flags that name a file which is written at the end: it is refused at the beginning."""
    if target is not None and str(target) != "-":
        require_place(Path(target), "name a file in a folder that is there and may be written in")
    return target


Json = Annotated[
    str | None,
    typer.Option(
        "--json", metavar="FILE|-", help="Write the result as JSON; - is standard output.",
        callback=writable,
    ),
]  # fmt: skip
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.")]
OneTier = Annotated[
    str, typer.Option("--tier", metavar="TIER", help="Where: dram, numa:1, shm:, file:DIR, …")
]
Near = Annotated[str, typer.Option("--near", metavar="TIER", help="The near side: dram, numa:0, …")]
Far = Annotated[
    str, typer.Option("--far", metavar="TIER", help="The far side: numa:1, fsdax:DIR, shm:, …")
]
Threads = Annotated[
    list[int] | None,
    typer.Option("--threads", metavar="N", min=1, help="Threads; repeat for several."),
]
Cpus = Annotated[
    str | None,
    typer.Option("--cpus", metavar="LIST", help="Processors to use, such as 0-3,8."),
]
Size = Annotated[
    str | None,
    typer.Option("--size", metavar="SIZE", help="Bytes (of each array), such as 256MiB."),
]
Time = Annotated[
    str | None,
    typer.Option("--time", metavar="TIME", help="Longest time to measure, such as 10 or 2min."),
]
Runs = Annotated[
    int | None,
    typer.Option("--runs", metavar="N", min=1, help="Repeats, instead of as many as it takes."),
]
Warmup = Annotated[
    int, typer.Option("--warmup", metavar="N", min=0, help="Repeats run first and not counted.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Of every random order.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 4 if the machine was too noisy.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be measured, and stop.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Directory of the record (default: nearfar-runs/…)."),
]
NearThreads = Annotated[
    int, typer.Option("--near-threads", metavar="D", min=1, help="Threads on the near side.")
]
FarThreads = Annotated[
    int, typer.Option("--far-threads", metavar="V", min=1, help="Threads on the far side.")
]
MaybeNearThreads = Annotated[
    int | None, typer.Option("--near-threads", metavar="D", min=1, help="Threads on the near side.")
]
MaybeFarThreads = Annotated[
    int | None, typer.Option("--far-threads", metavar="V", min=1, help="Threads on the far side.")
]
Calibrate = Annotated[
    str | None, typer.Option("--calibrate", metavar="CAL.csv", help="Measured, of the same work.")
]


@dataclass(frozen=True)
class Kept:
    """How a run is recorded, and ends."""

    seed: int
    out: Path | None
    strict: bool
    quiet: bool


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
        """What of them the record takes."""
        return Kept(self.seed, self.out, self.strict, self.quiet)

    def budget_s(self, default: float) -> float:
        """Seconds to measure: --time, or the verb's own."""
        from nearfar.units import parse_seconds

        return parse_seconds(self.time) if self.time else default


def grouped(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the fields of each parameter that is a dataclass as flags, in its place.

    Typer reads flags from a function's signature: this one has a parameter for each field, and
    hands the fields over as one.
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
    """A parameter for each field of a dataclass."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, annotation=hints[field.name],
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
        )
        for field in fields(group)
    ]  # fmt: skip
