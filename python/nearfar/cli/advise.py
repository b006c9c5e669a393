"""``nearfar advise``."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.output import Output, show_measured
from nearfar.records.choices import PlacementTool
from nearfar.units import parse_seconds

Budget = Annotated[
    str | None,
    flags.size(
        "--near-budget", "Near memory for all movable data (default: at the knee of the curve)."
    ),
]
Far = Annotated[
    list[str] | None,
    flags.text(
        "--far",
        "PROFILE|TIER",
        "Far memory: a device profile, or a tier of this machine; repeat to compare "
        "several (default: cxl-asic).",
    ),
]
Near = Annotated[
    str, flags.text("--near", "PROFILE|TIER", "Near memory (dram: as on this machine).")
]
Host = Annotated[
    str, flags.text("--host", "HOST", "Host whose caches are modeled: this, a name, a file.")
]
#: Times without the flag: the limit of a run, and how long a running process is sampled.
_RUN_TIME, _ATTACHED_TIME = "5min", "30s"
Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="TIME",
        help="Time limit of each run (default: 5min); with --pid how long it is sampled (30s).",
        callback=flags.a_time,
    ),
]
IgnoreFailure = Annotated[
    bool,
    typer.Option("--ignore-failure", help="Accept a program that exits with a nonzero code."),
]
Emulate = Annotated[
    bool,
    typer.Option("--emulate", help="Trace every access under an emulator, 10 to 50 times slower."),
]
WholeSites = Annotated[
    bool,
    typer.Option("--whole-sites", help="Place each site near or far, none on both memories."),
]
#: Limit of the kernel (proc(5), pid_max).
_MAX_PID = 1 << 22
Emit = Annotated[
    PlacementTool | None,
    typer.Option("--emit", help="Print a script for this tool, instead of the advice."),
]
Pid = Annotated[
    int | None,
    typer.Option(
        "--pid", metavar="PID", help="Sample a running process, for --time.", min=1, max=_MAX_PID
    ),
]
Perf = Annotated[
    str | None,
    typer.Option(
        "--perf", metavar="FILE", help="Read samples that perf recorded, instead of a run."
    ),
]


_PANELS = {
    "What is observed": "time emulate pid perf ignore_failure",
    "Memories": "near_budget far near background whole_sites host llc remeasure",
    "Output": "emit out json strict quiet",
}


@flags.in_panels(_PANELS)
def advise(
    program: flags.OptionalProgram = None,
    near_budget: Budget = None,
    far: Far = None,
    near: Near = "dram",
    background: flags.Background = None,
    whole_sites: WholeSites = False,
    host: Host = "this",
    llc: flags.LastCache = None,
    remeasure: flags.Remeasure = False,
    time: Time = None,
    emulate: Emulate = False,
    pid: Pid = None,
    perf: Perf = None,
    ignore_failure: IgnoreFailure = False,
    emit: Emit = None,
    out: flags.Out = None,
    json: flags.Json = None,
    strict: flags.Strict = False,
    quiet: flags.Quiet = False,
) -> None:
    """Predict the slowdown of a program on far memory and plan which of its data stays near.

    The program runs unmodified, at full speed, while its stalls are sampled from outside: which
    instruction waits, for which address, in data of which allocation site. Stalls that are cache
    misses are found from the density of the addresses, and a model of the core gives the cost of
    each site in far memory. The plan keeps the set of sites near that saves the most time;
    `nearfar run --plan PLAN` applies it, and --check verifies it. Without --near-budget, the budget
    is the knee of the curve of slowdown against near memory.

    With --pid a running process and its children are sampled for --time, without stopping them;
    their allocation sites are not known, so that the plan has regions of memory, for
    `nearfar place`. With --emulate every access is traced under an emulator: exact counts, energy,
    wear and policies of kernels and hardware, for short programs. --perf FILE reads samples that
    perf recorded earlier or on another machine: of the clock with registers
    (docs/how-to/perf-data.md has the command), or of memory accesses by hardware (perf mem record).
    A file has no allocation sites either.

    A file that is standard input is read from its start in each run; a pipe or a terminal is not
    passed on, and the program's output is discarded. A run that exceeds --time is stopped, and the
    result covers the part that ran. Programs that it starts are included. A program that fails gets
    no result.

    A site may be on both memories: the plan interleaves its pages in eighths if that saves at least
    1 % of the time. This time is predicted for the load that the program puts on both memories,
    with bandwidths and loaded latencies of the profiles. Interleaving helps programs that need more
    bandwidth than near memory has, and a large site that does not fit the budget.

    With --emit the answer is a script for numactl, for the kernel's weighted interleaving, for damo
    or for memkind. What the tool cannot express is a comment in the script. For weighted
    interleaving, tiers of this machine are measured with all threads.

    --background is the traffic of other programs on a memory that is a profile: advice uses the
    latency of the memory under this load, and the bandwidth that remains. The program itself is
    observed on the machine as it is now.

    Examples:

        nearfar advise -- ./program its arguments

        nearfar advise --near-budget 256MiB --far cxl-asic --far optane-100 -- ./program

        nearfar advise --pid $(pidof redis-server) --time 30s

        nearfar advise --perf perf.data

        nearfar advise --far numa:1 --emit numactl -- ./program > run.sh

        nearfar advise --emulate --far numa:1 --json advice.json -- python3 script.py
    """
    from nearfar import api
    from nearfar.process.stdin import of_this_process
    from nearfar.report import other_tools
    from nearfar.report.console import note
    from nearfar.report.html import page
    from nearfar.report.terminal.advising import advice

    if emit is not None:
        other_tools.require_tool(emit, has_program=bool(program), is_running=pid is not None)
    done = api.advise(
        program or [],
        flags.options(out=out, quiet=quiet),
        near_budget=near_budget,
        far=far or ["cxl-asic"],
        near=near,
        host=api.HostChoice(host, remeasure, llc),
        time_s=parse_seconds(time or (_RUN_TIME if pid is None else _ATTACHED_TIME)),
        ignore_failure=ignore_failure,
        stdin=of_this_process(),
        emulate=emulate,
        pid=pid,
        perf=perf,
        background=background or (),
        whole_sites=whole_sites,
        peaks=emit == "weighted-interleave",
    )
    try:
        show = other_tools.script_of(emit) if emit else advice
        output = Output(json, strict, quiet, is_script=emit is not None)
        show_measured(done, show(done.result), output)
    finally:  # the report is written after the answer is shown, also if --strict raises NoisyError
        report = page.write_report(done.folder, done.run)
        if not quiet:
            note(f"report: {report}")
