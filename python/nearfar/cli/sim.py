"""``nearfar sim``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags, ranges
from nearfar.cli.output import Output, show_measured, show_notes
from nearfar.records.choices import (
    CoreModel,
    EngineChoice,
    PagePolicy,
    Scheduler,
    StreamPattern,
    WritePolicy,
)

Trace = Annotated[
    Path | None, typer.Argument(metavar="[TRACE]", help="Trace recorded by `nearfar trace`.")
]
Counts = Annotated[
    Path | None, flags.text("--counts", "FILE.json", "Reads and writes of both tiers.")
]
Pattern = Annotated[StreamPattern | None, typer.Option("--pattern", help="Synthetic stream.")]
Curve = Annotated[bool, typer.Option("--curve", help="Latency of --far by offered bandwidth.")]
Experiment = Annotated[
    str | None, flags.text("--experiment", "NAME|FILE", "Experiment: seoul, or a file.")
]
Near = Annotated[
    str,
    flags.text(
        "--near", "PROFILE|TIER", "Near memory: a device, or a tier of this machine (measured)."
    ),
]
Far = Annotated[str, flags.text("--far", "PROFILE|TIER", "Far memory, likewise.")]
Placement = Annotated[
    str,
    flags.text(
        "--placement",
        "WHERE",
        "all-near, all-far, interleave:N:M, first-touch, memory-mode, clock-dwf, hot-pages, or a "
        "plan.",
    ),
]
Place = Annotated[
    list[str] | None,
    flags.text(
        "--place",
        "RULE",
        "near: or far:, then object=N, site=N, page=N or address=BEGIN-END; repeatable.",
    ),
]
NearSize = Annotated[
    str | None, flags.size("--near-size", "Near memory, for policies that fill it.")
]
Engine = Annotated[
    EngineChoice,
    typer.Option(
        "--engine",
        help="Engine. auto: fast where it is within 5 % of exact, else exact. both: a sample with "
        "each, and the difference.",
    ),
]
Core = Annotated[
    CoreModel, typer.Option("--core", help="One access at a time, a window, or as traced.")
]
Window = Annotated[
    int | None,
    flags.count(
        "--window",
        most=1024,
        help="Accesses in flight (default: the profile's read_parallelism, else 10).",
    ),
]
Threads = Annotated[
    int | None,
    flags.count(
        "--threads",
        most=ranges.MAX_THREADS,
        help="Threads that simulate channels, with --engine exact and --core trace-time "
        "(default: 1).",
    ),
]
Pages = Annotated[
    PagePolicy | None,
    typer.Option(
        "--page-policy", help="When rows are closed (default: open; closed with --counts)."
    ),
]
RowTimeout = Annotated[
    float | None,
    flags.nanoseconds(
        "--row-timeout", "Idle time of a row until --page-policy timeout closes it (default: 100)."
    ),
]
Schedule = Annotated[
    Scheduler,
    typer.Option(
        "--scheduler", help="Next command: the first ready one, or that of the oldest request."
    ),
]
RowHitCap = Annotated[
    int | None,
    flags.count(
        "--row-hit-cap",
        help="Accesses to an open row after which an older request goes first (default: no limit).",
    ),
]
WriteDrain = Annotated[
    str,
    flags.text(
        "--write-drain",
        "FROM:TO:IDLE",
        "Queued writes that start a drain, end it, and start it while no read waits.",
    ),
]
Mapping = Annotated[
    str,
    flags.text(
        "--mapping", "FIELDS", "Address fields from the highest bits: ro, then ra, ba, bg, co, ch."
    ),
]
PowerDown = Annotated[
    float | None,
    flags.nanoseconds(
        "--power-down-after", "Idle time of a rank until power-down (default: never)."
    ),
]
SelfRefresh = Annotated[
    float | None,
    flags.nanoseconds(
        "--self-refresh-after",
        "Idle time of a rank until self-refresh (default: never).",
    ),
]
Writes = Annotated[
    WritePolicy | None,
    typer.Option(
        "--write-policy",
        help="Whether writes block the program (default: posted; blocking with --counts).",
    ),
]
InstructionNs = Annotated[
    float,
    flags.nanoseconds("--instruction-ns", "Time of each traced instruction in ns."),
]
Requests = Annotated[
    int | None,
    flags.count(
        "--requests",
        help="Requests of --pattern (default: 1000000), or of a point of --curve (200000).",
    ),
]
Size = Annotated[str, flags.size("--size", "Region of --pattern.")]
WriteShare = Annotated[
    float,
    typer.Option("--write-share", metavar="SHARE", min=0, max=1, help="Writes of --pattern."),
]
CpuTime = Annotated[
    float,
    typer.Option(
        "--cpu-time-s",
        metavar="T",
        min=0,
        max=ranges.MAX_SECONDS,
        help="With --counts: CPU time in seconds.",
    ),
]


Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Keep a record in this directory (--experiment: by default nearfar-runs/…).",
        callback=flags.record_place,
    ),
]
_PANELS = {
    "Source: one of these, or a trace": "counts pattern curve experiment",
    "Memories, and what lies where": "near far placement place near_size",
    "Engine and core": "engine core window threads write_policy instruction_ns truncated",
    "Memory controller": "page_policy row_timeout scheduler row_hit_cap write_drain "
    "mapping power_down_after self_refresh_after",
    "Synthetic streams and counts": "requests size write_share cpu_time_s seed",
    "Output": "out json quiet",
}


@flags.in_panels(_PANELS)
def sim(
    context: typer.Context,
    trace: Trace = None,
    counts: Counts = None,
    pattern: Pattern = None,
    curve: Curve = False,
    experiment: Experiment = None,
    near: Near = "dram-snu",
    far: Far = "pcm-snu-ns",
    placement: Placement = "all-far",
    place: Place = None,
    near_size: NearSize = None,
    engine: Engine = "auto",
    core: Core = "window",
    window: Window = None,
    threads: Threads = None,
    page_policy: Pages = None,
    row_timeout: RowTimeout = None,
    scheduler: Schedule = "fr-fcfs",
    row_hit_cap: RowHitCap = None,
    write_drain: WriteDrain = "32:16:1",
    mapping: Mapping = "rorabacobgch",
    power_down_after: PowerDown = None,
    self_refresh_after: SelfRefresh = None,
    write_policy: Writes = None,
    instruction_ns: InstructionNs = 0.37,
    requests: Requests = None,
    size: Size = "1GiB",
    write_share: WriteShare = 0.0,
    cpu_time_s: CpuTime = 0.0,
    seed: flags.Seed = 1,
    truncated: flags.Truncated = False,
    out: Out = None,
    json: flags.Json = None,
    quiet: flags.Quiet = False,
) -> None:
    """Simulate a program on two memories, from a trace, from counts, or with a synthetic stream.

    --experiment seoul is the experiment of the Seoul thesis: sorts, lattice Boltzmann and matrices,
    traced and simulated with their arrays far and near, compared with the published claims. It
    writes a record, as all simulations do with --out, for `nearfar report`, `show` and `compare`.

    With --counts, FILE.json is {"near": {"reads": N, "writes": N}, "far": {"reads": N, "writes":
    N}}: accesses of one line each, one after another, as the Seoul thesis counts them.

    Examples:

        nearfar sim sort.trace --near ddr4-3200 --far pcm-lee --placement all-far --engine both

        nearfar sim sort.trace --far optane-100-lens --placement hot-pages --near-size 16MiB

        nearfar sim --pattern random --far cxl-ddr5 --engine exact --json -

        nearfar sim --pattern random --near dram --far cxl-ddr5 --placement interleave:3:1

        nearfar sim --curve --far ddr4-3200 --write-share 0.3

        nearfar sim --experiment seoul --out seoul

        nearfar sim --counts quicksort.json --near dram-snu --far pcm-snu-ns --cpu-time-s 0.02
    """
    from nearfar import api
    from nearfar.report.printing import show
    from nearfar.report.terminal import experiment as experiment_tables
    from nearfar.report.terminal import simulation
    from nearfar.workflows import simulating

    given = flags.given(context)
    fields = {name: context.params[name] for name in api.SimRequest.names()}
    request = api.SimRequest(**{**fields, "place": place or ()})
    if context.obj is flags.CHECK_ONLY or experiment is not None:
        simulating.check(request, given)
    if context.obj is flags.CHECK_ONLY:
        return
    if experiment is not None:
        done = simulating.experiment(experiment, flags.options(out=out, quiet=quiet))
        show_measured(done, experiment_tables.experiment(done.result), Output(json, quiet=quiet))
        return
    if out is not None:
        kept = simulating.simulate_recorded(request, flags.options(out=out, quiet=quiet), given)
        show_notes(kept.result.warnings)
        show_measured(kept, simulation.simulated(kept.result), Output(json, quiet=quiet))
        return
    result = api.simulate(request, given=given, progress=flags.progress_of(quiet))
    show("sim", result, simulation.simulated(result), json)
