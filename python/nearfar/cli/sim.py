"""``nearfar sim``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import options


class PagePolicy(StrEnum):
    """What becomes of an open row."""

    OPEN = "open"
    CLOSED = "closed"
    TIMEOUT = "timeout"


class WritePolicy(StrEnum):
    """What a program waits for when it writes."""

    BLOCKING = "blocking"
    POSTED = "posted"


class Engine(StrEnum):
    """Requests timed once, or every command; or both, and the difference."""

    FAST = "fast"
    EXACT = "exact"
    BOTH = "both"


class CoreModel(StrEnum):
    """When the next request sets out."""

    BLOCKING = "blocking"
    WINDOW = "window"
    TRACE_TIME = "trace-time"


class Pattern(StrEnum):
    """Streams that are made up."""

    SEQUENTIAL = "sequential"
    RANDOM = "random"
    CHASE = "chase"


def sim(
    context: typer.Context,
    trace: Annotated[
        Path | None, typer.Argument(metavar="[TRACE]", help="A trace of `nearfar trace`.")
    ] = None,
    counts: Annotated[
        Path | None,
        typer.Option("--counts", metavar="FILE.json", help="Reads and writes of both tiers."),
    ] = None,
    pattern: Annotated[
        Pattern | None, typer.Option("--pattern", help="A stream that is made up.")
    ] = None,
    curve: Annotated[
        bool, typer.Option("--curve", help="Latency of --far by the bandwidth asked of it.")
    ] = False,
    suite: Annotated[
        str | None,
        typer.Option("--suite", metavar="NAME|FILE", help="An experiment: seoul, or a file."),
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
            help="near: or far:, then object=N, site=N, page=N or address=BEGIN-END; repeated.",
        ),
    ] = None,
    near_size: Annotated[
        str | None,
        typer.Option("--near-size", metavar="SIZE", help="Near memory of policies that fill it."),
    ] = None,
    engine: Annotated[
        Engine, typer.Option("--engine", help="both: a sample by both, and the difference.")
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
            help="Do writes hold the program? (default: posted; blocking with --counts)",
        ),
    ] = None,
    instruction_ns: Annotated[
        float,
        typer.Option("--instruction-ns", metavar="NS", min=0, help="Of each traced instruction."),
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
        str, typer.Option("--size", metavar="SIZE", help="Region of --pattern.")
    ] = "1GiB",
    write_share: Annotated[
        float, typer.Option("--write-share", metavar="SHARE", min=0, max=1, help="Of --pattern.")
    ] = 0.0,
    cpu_time_s: Annotated[
        float,
        typer.Option("--cpu-time-s", metavar="T", min=0, help="With --counts: processor time."),
    ] = 0.0,
    seed: options.Seed = 1,
    out: options.Out = None,
    json: options.Json = None,
    quiet: options.Quiet = False,
) -> None:
    """A program on two simulated memories: from a trace, from counts, or a stream made up.

    --suite seoul is the Seoul thesis' experiment: sorts, lattice Boltzmann and matrices, traced
    and simulated with their arrays far and near, beside the published claims; it writes a record.

    With --counts, FILE.json is {"near": {"reads": N, "writes": N}, "far": {"reads": N, "writes":
    N}}: accesses of a line each, one after another, as the Seoul thesis counts them.

    Examples:

        nearfar sim sort.trace --near ddr4-3200 --far pcm-lee --placement all-far --engine both

        nearfar sim sort.trace --far optane-100-lens --placement hot-pages --near-size 16MiB

        nearfar sim --pattern random --far cxl-ddr5 --engine exact --json -

        nearfar sim --curve --far ddr4-3200 --write-share 0.3

        nearfar sim --suite seoul --out seoul

        nearfar sim --counts quicksort.json --near dram-snu --far pcm-snu-ns --cpu-time-s 0.02
    """
    from nearfar.cli import sim_flags, simulating

    request = simulating.Request(
        trace=trace, counts=counts, pattern=pattern.value if pattern else None, curve=curve,
        near=near,
        far=far, placement=placement, place=place or [], near_size=near_size, engine=engine.value,
        core=core.value, window=window, page_policy=page_policy.value if page_policy else None,
        write_policy=write_policy.value if write_policy else None, instruction_ns=instruction_ns,
        entries=entries, size=size, write_share=write_share, cpu_time_s=cpu_time_s, seed=seed,
        suite=suite, out=out, quiet=quiet, given=sim_flags.given(context),
    )  # fmt: skip
    simulating.simulate(request, json)
