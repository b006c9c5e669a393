"""``nearfar sim``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags, ranges


class PagePolicy(StrEnum):
    """What happens to an open row."""

    OPEN = "open"
    CLOSED = "closed"
    TIMEOUT = "timeout"


class WritePolicy(StrEnum):
    """Whether a write blocks the program."""

    BLOCKING = "blocking"
    POSTED = "posted"


class Engine(StrEnum):
    """Time each request once (fast), simulate every command (exact), or both and the difference."""

    FAST = "fast"
    EXACT = "exact"
    BOTH = "both"


class CoreModel(StrEnum):
    """When the core issues the next request."""

    BLOCKING = "blocking"
    WINDOW = "window"
    TRACE_TIME = "trace-time"


class Pattern(StrEnum):
    """Synthetic streams."""

    SEQUENTIAL = "sequential"
    RANDOM = "random"
    CHASE = "chase"


def sim(
    context: typer.Context,
    trace: Annotated[
        Path | None, typer.Argument(metavar="[TRACE]", help="Trace recorded by `nearfar trace`.")
    ] = None,
    counts: Annotated[
        Path | None,
        typer.Option("--counts", metavar="FILE.json", help="Reads and writes of both tiers."),
    ] = None,
    pattern: Annotated[Pattern | None, typer.Option("--pattern", help="Synthetic stream.")] = None,
    curve: Annotated[
        bool, typer.Option("--curve", help="Latency of --far by offered bandwidth.")
    ] = False,
    suite: Annotated[
        str | None,
        typer.Option("--suite", metavar="NAME|FILE", help="Experiment: seoul, or a file."),
    ] = None,
    near: Annotated[
        str, typer.Option("--near", metavar="PROFILE", help="Device of the near tier.")
    ] = "dram-snu",
    far: Annotated[
        str, typer.Option("--far", metavar="PROFILE", help="Device of the far tier.")
    ] = "pcm-snu-ns",
    placement: Annotated[
        str,
        typer.Option(
            "--placement",
            metavar="WHERE",
            help="all-near, all-far, interleave:N:M, first-touch, memory-mode, clock-dwf, "
            "hot-pages, or a plan.",
        ),
    ] = "all-far",
    place: Annotated[
        list[str] | None,
        typer.Option(
            "--place",
            metavar="RULE",
            help="near: or far:, then object=N, site=N, page=N or address=BEGIN-END; repeatable.",
        ),
    ] = None,
    near_size: Annotated[
        str | None,
        typer.Option(
            "--near-size",
            metavar="SIZE",
            help="Near memory, for policies that fill it.",
            callback=flags.a_size,
        ),
    ] = None,
    engine: Annotated[
        Engine,
        typer.Option("--engine", help="Engine; both: a sample with each, and the difference."),
    ] = Engine.FAST,
    core: Annotated[
        CoreModel, typer.Option("--core", help="One access at a time, a window, or as traced.")
    ] = CoreModel.WINDOW,
    window: Annotated[
        int | None,
        typer.Option(
            "--window",
            metavar="N",
            min=1,
            max=1024,
            help="Accesses in flight (default: the profile's read_parallelism, else 10).",
        ),
    ] = None,
    page_policy: Annotated[
        PagePolicy | None,
        typer.Option("--page-policy", help="Open rows (default: open; closed with --counts)."),
    ] = None,
    write_policy: Annotated[
        WritePolicy | None,
        typer.Option(
            "--write-policy",
            help="Whether writes block the program (default: posted; blocking with --counts).",
        ),
    ] = None,
    instruction_ns: Annotated[
        float,
        typer.Option(
            "--instruction-ns",
            metavar="NS",
            min=0,
            max=ranges.MOST_NS,
            help="Time of each traced instruction in ns.",
        ),
    ] = 0.37,
    entries: Annotated[
        int | None,
        typer.Option(
            "-n",
            metavar="N",
            min=1,
            max=10**12,
            help="Requests of --pattern (default: 1000000), or of a point of --curve (200000).",
        ),
    ] = None,
    size: Annotated[
        str,
        typer.Option("--size", metavar="SIZE", help="Region of --pattern.", callback=flags.a_size),
    ] = "1GiB",
    write_share: Annotated[
        float,
        typer.Option("--write-share", metavar="SHARE", min=0, max=1, help="Writes of --pattern."),
    ] = 0.0,
    cpu_time_s: Annotated[
        float,
        typer.Option(
            "--cpu-time-s",
            metavar="T",
            min=0,
            max=ranges.MOST_SECONDS,
            help="With --counts: CPU time in seconds.",
        ),
    ] = 0.0,
    seed: flags.Seed = 1,
    out: flags.Out = None,
    json: flags.Json = None,
    quiet: flags.Quiet = False,
) -> None:
    """Simulate a program on two memories, from a trace, from counts, or with a synthetic stream.

    --suite seoul is the experiment of the Seoul thesis: sorts, lattice Boltzmann and matrices,
    traced and simulated with their arrays far and near, compared with the published claims. It
    writes a record.

    With --counts, FILE.json is {"near": {"reads": N, "writes": N}, "far": {"reads": N, "writes":
    N}}: accesses of one line each, one after another, as the Seoul thesis counts them.

    Examples:

        nearfar sim sort.trace --near ddr4-3200 --far pcm-lee --placement all-far --engine both

        nearfar sim sort.trace --far optane-100-lens --placement hot-pages --near-size 16MiB

        nearfar sim --pattern random --far cxl-ddr5 --engine exact --json -

        nearfar sim --curve --far ddr4-3200 --write-share 0.3

        nearfar sim --suite seoul --out seoul

        nearfar sim --counts quicksort.json --near dram-snu --far pcm-snu-ns --cpu-time-s 0.02
    """
    from nearfar.workflows import simulating

    request = simulating.Request(
        trace=trace, counts=counts, pattern=pattern.value if pattern else None, curve=curve,
        near=near,
        far=far, placement=placement, place=place or [], near_size=near_size, engine=engine.value,
        core=core.value, window=window, page_policy=page_policy.value if page_policy else None,
        write_policy=write_policy.value if write_policy else None, instruction_ns=instruction_ns,
        entries=entries, size=size, write_share=write_share, cpu_time_s=cpu_time_s, seed=seed,
        suite=suite, out=out, quiet=quiet, given=_given(context),
    )  # fmt: skip
    if context.obj is flags.CHECK_ALONE:
        simulating.check(request)
    else:
        simulating.simulate(request, json)


def _given(context: typer.Context) -> dict[str, str]:
    """Return the parameters given on the command line, each with its flag."""
    names = {p.name: p.opts[-1] for p in context.command.params if p.name}
    sources = {name: context.get_parameter_source(name) for name in names}
    return {
        name: names[name]
        for name, source in sources.items()
        if source is not None and source.name == "COMMANDLINE"
    }
