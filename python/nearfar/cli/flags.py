"""Flags of the verbs, each defined once."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from nearfar.cli import ranges
from nearfar.cli.output import Output
from nearfar.errors import BadInputError
from nearfar.files import require_directory_place, require_place
from nearfar.records.choices import StencilVersion
from nearfar.units import parse_cpus, parse_seconds, parse_size

if TYPE_CHECKING:
    from nearfar.measure.progress import ProgressSource
    from nearfar.workflows.options import Options


def writable(target: str | Path | None) -> str | Path | None:
    """For flags that name an output file: refuse an unwritable one before the work starts."""
    _given(target)
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


def a_last_cache(text: str | None) -> str | None:
    """For ``--llc``: refuse invalid text before the work starts."""
    from nearfar.tracing.caches import parse_level

    if text is not None and text != "none":
        parse_level(text, ways=1)
    return text


def record_place(path: Path | None) -> Path | None:
    """Refuse a directory of a record that cannot be made, before any work."""
    _given(path)
    above = next((p for p in path.parents if os.path.lexists(p)), None) if path else None
    if above is not None and not os.path.isdir(above):  # noqa: PTH112 - is_dir() may raise
        raise BadInputError(f"--out {path}: {above} is not a directory", "name another directory")
    if path is not None and not os.path.lexists(path):
        require_directory_place(path, "name a directory you may write to: --out DIR")
    return path


def _given(value: object) -> object:
    """Refuse a missing value: an empty one, or the next flag in its place."""
    for text in map(str, value if isinstance(value, list) else [value]):
        if text == "":
            raise typer.BadParameter("the value is empty")
        if text.startswith("--"):
            raise typer.BadParameter(
                f"{text} is a flag, not a value; a file of this name: ./{text}"
            )
    return value


a_size, a_time, a_cpu_list = _checked(parse_size), _checked(parse_seconds), _checked(parse_cpus)


def count(
    *names: str,
    help: str | None = None,  # noqa: A002 - as Typer calls it
    metavar: str = "N",
    least: int = 1,
    most: int = ranges.MAX_COUNT,
) -> Any:
    """Return a flag whose value is a whole number from ``least`` to ``most``."""
    return typer.Option(*names, metavar=metavar, min=least, max=most, help=help)


def text(name: str, metavar: str, help: str) -> Any:  # noqa: A002
    """Return a flag whose value is a text."""
    return typer.Option(name, metavar=metavar, help=help, callback=_given)


def size(name: str, help: str) -> Any:  # noqa: A002
    """Return a flag whose value is a size, such as 256MiB."""
    return typer.Option(name, metavar="SIZE", help=help, callback=a_size)


def nanoseconds(name: str, help: str) -> Any:  # noqa: A002
    """Return a flag whose value is a time in ns."""
    return typer.Option(name, metavar="NS", min=0, max=ranges.MAX_NS, help=help)


def table(help: str) -> Any:  # noqa: A002
    """Return the flag --csv, which names a file for rows that a model reads."""
    return typer.Option("--csv", metavar="FILE", help=help, callback=writable)


# Flags: output.

Json = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE|-",
        help="Write the result as JSON; - is standard output.",
        callback=writable,
    ),
]
#: Tables of the result. ``verb_group.py`` adds this flag to each verb that has ``--json``.
Csv = Annotated[
    str | None,
    typer.Option(
        "--csv",
        metavar="FILE|-",
        help="Write the tables as CSV; - is standard output.",
        callback=writable,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notes.")]
Truncated = Annotated[
    bool,
    typer.Option(
        "--truncated", help="Accept a trace that is cut short or damaged: use the part before that."
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 4 if the run was disturbed.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Directory of the record (default: nearfar-runs/…).",
        callback=record_place,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be run, and stop.")]
#: Set as the object of a Click context, it makes a verb check its combination of flags and return
#: before the work. A sweep checks all of its cells so.
CHECK_ONLY = object()

# Flags: where to measure, and what program.

OneTier = Annotated[str, text("--tier", "TIER", "Tier: dram, numa:1, shm:, file:DIR, …")]
Near = Annotated[str, text("--near", "TIER", "Near tier: dram, numa:0, …")]
Far = Annotated[str, text("--far", "TIER", "Far tier: numa:1, fsdax:DIR, shm:, …")]
Cpus = Annotated[
    str | None,
    typer.Option("--cpus", metavar="LIST", help="CPUs to use, such as 0-3,8.", callback=a_cpu_list),
]
#: A program with its arguments.
Program = Annotated[list[str], typer.Argument(metavar="-- PROGRAM [ARGS]…", show_default=False)]

OptionalProgram = Annotated[
    list[str] | None, typer.Argument(metavar="-- PROGRAM [ARGS]…", show_default=False)
]

# Flags: how much to measure.

Threads = Annotated[
    list[int] | None,
    count("--threads", most=ranges.MAX_THREADS, help="Threads; repeat for several."),
]
_NEAR_THREADS = count(
    "--near-threads", metavar="D", most=ranges.MAX_THREADS, help="Threads on the near side."
)
_FAR_THREADS = count(
    "--far-threads", metavar="V", most=ranges.MAX_THREADS, help="Threads on the far side."
)
NearThreads = Annotated[int, _NEAR_THREADS]
FarThreads = Annotated[int, _FAR_THREADS]
MaybeNearThreads = Annotated[int | None, _NEAR_THREADS]
MaybeFarThreads = Annotated[int | None, _FAR_THREADS]
Size = Annotated[str | None, size("--size", "Bytes (of each array), such as 256MiB.")]
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
    count(
        "--runs",
        most=ranges.MAX_REPEATS,
        help="Number of repeats (default: as many as the precision requires).",
    ),
]
Warmup = Annotated[
    int,
    count("--warmup", least=0, most=ranges.MAX_REPEATS, help="Warm-up repeats, not counted."),
]
Seed = Annotated[int, count("--seed", least=0, most=ranges.MAX_SEED, help="Seed of random orders.")]

LastCache = Annotated[
    str | None,
    typer.Option(
        "--llc",
        metavar="SIZE[/WAYS]",
        help="Last cache instead of the host's; `none`: two levels.",
        callback=a_last_cache,
    ),
]
Remeasure = Annotated[
    bool,
    typer.Option(
        "--remeasure", help="Measure this machine again, in half a minute, and keep the result."
    ),
]

# Flags: inputs of models and structures.

Background = Annotated[
    list[str] | None,
    text(
        "--background",
        "LOAD",
        "Traffic of other programs, such as near=40GB/s, or far=5GB/s@67% (fraction of reads); "
        "repeat for both memories.",
    ),
]
BorderVersion = Annotated[
    StencilVersion, typer.Option("--version", help="Border rows: read directly, or ghost copies.")
]
Calibrate = Annotated[str | None, text("--calibrate", "CAL.csv", "Measured row of this work.")]
Update = Annotated[
    int, count("--update", metavar="PERCENT", least=0, most=100, help="Updates, % of operations.")
]
Entries = Annotated[int, count("--entries", help="Initial entries (1024).")]


def progress_of(quiet: bool) -> ProgressSource:
    """Return progress on the terminal, or none."""
    from functools import partial

    from nearfar.report.console import progress

    return partial(progress, quiet)


def options(
    seed: int = 1, time: str | None = None, out: Path | None = None, *, quiet: bool
) -> Options:
    """Return the options of a measurement that has few flags."""
    from nearfar.workflows.options import Options

    time_s = parse_seconds(time) if time is not None else None
    return Options(time_s=time_s, seed=seed, out=out, progress=progress_of(quiet))


def given(context: typer.Context) -> dict[str, str]:
    """Return the parameters given on the command line, each with its flag."""
    names = {p.name: p.opts[-1] for p in context.command.params if p.name}
    sources = {name: context.get_parameter_source(name) for name in names}
    return {
        name: names[name]
        for name, source in sources.items()
        if source is not None and source.name == "COMMANDLINE"
    }


@dataclass(frozen=True)
class Measuring:
    """The flags that most measuring verbs have (``bench``, ``probe``): how often and how long to
    measure, and where the result goes. Other verbs list the flags that have an effect on them."""

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
    def options(self) -> Options:
        """Return how to measure, and where the record goes."""
        from nearfar.workflows.options import Options

        return Options(
            self.cpus,
            parse_seconds(self.time) if self.time is not None else None,
            self.runs,
            self.warmup,
            self.seed,
            self.out,
            progress_of(self.quiet),
        )

    @property
    def output(self) -> Output:
        """Return how to print the result."""
        return Output(self.json, self.strict, self.quiet)


def in_panels(panels: Mapping[str, str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Show the flags of a verb under headings in ``--help``.

    ``panels``: for each heading, the names of its parameters, separated by spaces.
    """
    headings = {name: heading for heading, names in panels.items() for name in names.split()}

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(verb, eval_str=True)
        parameters = [
            p.replace(annotation=under(p.annotation, headings[p.name])) if p.name in headings else p
            for p in signature.parameters.values()
        ]
        verb.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        verb.__annotations__ = {p.name: p.annotation for p in parameters}
        return verb

    return decorate


def under(annotation: Any, heading: str | None) -> Any:
    """Return an annotated flag that ``--help`` shows under a heading."""
    if heading is None:
        return annotation
    kind, option = get_args(annotation)
    option = copy(option)  # a flag may be shared by verbs
    option.rich_help_panel = heading
    return Annotated[kind, option]


def expand_dataclasses(verb: Callable[..., None]) -> Callable[..., None]:
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
