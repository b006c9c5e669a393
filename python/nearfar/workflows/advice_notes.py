"""Assumptions and limits of an answer of ``nearfar advise``, in sentences."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from nearfar.place.advising import FarResult
from nearfar.place.memory_costs import Memory, why_faster
from nearfar.place.samples import ProgramSamples
from nearfar.place.traced import BLOCK_RECORDS
from nearfar.records.advice import MUCH_UNKNOWN, FarAdvice, ObservedProgram, SiteAdvice
from nearfar.sampling.run import Sampled
from nearfar.tracing.recording import HOW_TO_INSTRUMENT
from nearfar.units import format_size
from nearfar.workflows.emulated_times import ProgramRuns

#: Slowdown of tracing above which another recorder is recommended.
SLOW_TRACING_RATIO = 60.0
#: Maximum number of programs that a note names.
MAX_NAMED_PROGRAMS = 6
#: Bytes unmapped during the run from which on a note is printed.
MUCH_GONE_BYTES = 1 << 20
#: Names of runtimes that move the objects of a program.
_MOVING_RUNTIMES = frozenset({"java", "node", "dotnet", "mono"})
#: A slowdown below it is explained; values between it and 1 are within the model's rounding.
FASTER_THAN_NEAR = 0.995
#: A site in a library without symbols is probably a wrapper of malloc, if it makes at least this
#: many allocations ...
MANY_ALLOCATIONS = 1000
#: ... and at least this fraction of all.
MOST_OF_ALL = 0.5
_STOPPED = (
    "the program reached the time limit and was stopped: the result covers the part that ran; "
    "raise --time to cover more"
)
_ALWAYS = (
    "threads are assumed not to wait for each other",
    "slowdowns are of CPU time; time spent waiting for files, devices or other programs is "
    "assumed not to change",
)


def emulated_limits() -> list[str]:
    """Return what every answer from a trace assumes."""
    return [
        "misses are those of modeled caches under an emulator, without the kernel's own accesses",
        *_ALWAYS,
    ]


def sampled_limits(sampled: Sampled, *, has_hardware: bool) -> list[str]:
    """Return what an answer from samples assumes. ``has_hardware``: hardware sampled the
    misses."""
    estimated = (
        "which sampled stalls were misses is estimated from the density of their addresses; "
        "accesses by the kernel are not included"
    )
    return [*([] if has_hardware else [estimated]), *sampled.limits, *_ALWAYS]


def sampled_notes(sampled: Sampled, data: ProgramSamples) -> list[str]:
    """Return what is particular to a sampled run."""
    notes = list(sampled.notes)
    if sampled.ended and sampled.code:
        notes.append(f"the program exited with {sampled.code}: this advice is for a failed run")
    if not sampled.ended:
        notes.append(_STOPPED)
    notes += _on_memory(sampled, data)
    if sampled.sampler.unlogged():
        notes.append(f"{sampled.sampler.unlogged()} processes ran without allocation sites")
    if sampled.sampler.lost():
        notes.append(f"{sampled.sampler.lost()} samples were lost")
    if data.unknown_share > MUCH_UNKNOWN:
        notes.append(
            f"for {data.unknown_share:.0%} of the samples the data address is unknown: their "
            "stalls are assumed not to grow, and the intervals include that all of them do; "
            "--emulate knows each address"
        )
    if len(sampled.programs) > 1:
        notes.append(
            f"{len(sampled.programs)} programs were sampled as one, in fractions of the CPU time: "
            f"{_cpu_fractions(sampled.programs)}"
        )
    return notes


def _on_memory(sampled: Sampled, data: ProgramSamples) -> list[str]:
    """Notes on the memory of a running process, and on data that moved or was freed."""
    notes = []
    if sampled.pid is not None:
        notes.append(
            "a process that was running before has no allocation sites, and its first touches are "
            "not sampled: its memory is placed by region; start it under "
            "`nearfar advise -- PROGRAM` to place it by call site"
        )
    if sampled.resident is not None and sampled.resident.gone_bytes >= MUCH_GONE_BYTES:
        notes.append(
            f"{format_size(sampled.resident.gone_bytes)} of its memory came and went while it was "
            "sampled; it counts with its largest size, and `nearfar place` moves what it finds"
        )
    moving = [name for name, _ in sampled.programs if Path(name).name in _MOVING_RUNTIMES]
    if moving and any(site.part is not None for site in data.sites):
        notes.append(
            f"{moving[0]} moves objects while it runs: ranges of its heap (range= in the plan) "
            "may hold for this moment only; with --whole-sites, each rule places a whole mapping"
        )
    return notes


def on_plan(plan: Path | None) -> list[str]:
    """A note if no plan was written."""
    if plan is not None:
        return []
    return ["no plan was written: the program used no memory that a plan can move"]


def on_wrappers(advice: FarAdvice) -> list[str]:
    """Notes on two kinds of heap sites: of a library without symbols, whose one call makes most
    allocations and hides who calls the library; and of calls whose blocks are divided by size."""
    heap = [site for site in advice.sites if site.kind == "heap"]
    of_all = sum(site.allocations for site in heap) or 1
    calls: defaultdict[str, list[SiteAdvice]] = defaultdict(list)
    for site in heap:
        if not site.functions and len(site.chain) == 1:
            calls[site.chain[0]].append(site)
    notes = []
    for call, sites in calls.items():
        place, _, offset = call.rpartition("+")
        made = sum(site.allocations for site in sites)
        is_nameless = sites[0].at.startswith(f"{Path(place).name}+{offset}")
        makes_most = made >= MANY_ALLOCATIONS and made >= MOST_OF_ALL * of_all
        if ".so" in Path(place).name and is_nameless and makes_most:
            notes.append(_on_wrapper(place, offset, made / of_all))
    if any(site.block_bytes for site in heap):
        notes.append(
            "blocks of one call are divided by size where their stalls differ: the size is the one "
            "that was requested first, as blocks keep site and tier when realloc() resizes them"
        )
    return notes


def _on_wrapper(place: str, offset: str, fraction: float) -> str:
    name = Path(place).name
    return (
        f"the call {name}+{offset} makes {fraction:.0%} of all allocations: it is probably a "
        "wrapper of malloc, in a library without symbols and frame pointers, which hides its "
        f"callers; the library's debug symbols name it (on Debian, `dpkg -S {place}` prints the "
        "package; its symbols are in PACKAGE-dbgsym), and a build with -fno-omit-frame-pointer "
        "divides it by caller; `nearfar advise --pid` on the running program divides its memory by "
        "region"
    )


def on_evaluated_blocks(every: int) -> list[str]:
    """A note on an emulated run so long that only one in ``every`` blocks of its trace is
    evaluated."""
    if every == 1:
        return []
    return [
        f"long run: placements and policies are computed from one in {every} blocks of "
        f"{BLOCK_RECORDS:,} lines, evenly spaced; reads and writes of sites are estimated from "
        "windows; caches, allocations and totals cover the whole run"
    ]


def faster(near: Memory, memories: list[Memory], found: list[FarResult]) -> list[str]:
    """Why a placement or a policy is faster than all data near, if one is."""
    notes = []
    for far, each in zip(memories, found, strict=True):
        advice = each.advice
        least = min(
            advice.slowdown_all_far,
            advice.slowdown_movable_far,
            advice.slowdown_plan,
            *(point.slowdown for point in advice.curve),
            *(policy.slowdown for policy in advice.policies),
        )
        if least < FASTER_THAN_NEAR:
            notes.append(
                f"with {far.name} the run comes out faster than all near "
                f"({least:.3f}): {why_faster(near, far)}"
            )
    return notes


def _cpu_fractions(programs: list[tuple[str, int]]) -> str:
    """The programs that execute most, as in "cc1 97 %, as 2 %, 3 others"."""
    total = sum(count for _, count in programs) or 1
    most = [
        f"{Path(path).name} {count / total:.0%}" for path, count in programs[:MAX_NAMED_PROGRAMS]
    ]
    others = len(programs) - len(most)
    return ", ".join([*most, f"{others} others"] if others > 0 else most)


def _traced_fractions(programs: list[ObservedProgram]) -> str:
    """Fractions of the CPU time, if it is known for a program; else of the instructions."""
    by_time = [(each.path, round(1e6 * (each.cpu_share or 0.0))) for each in programs]
    if any(count for _, count in by_time):
        return f"CPU time: {_cpu_fractions(by_time)}"
    by_instructions = [(each.path, each.instructions or 0) for each in programs]
    return f"instructions: {_cpu_fractions(by_instructions)}"


def emulated_notes(runs: ProgramRuns, misfit: float, chained: float) -> list[str]:
    """Return what is particular to a traced run.

    ``misfit``: modeled over measured time; ``chained``: fraction of the loads that are assumed to
    wait for the load before.
    """
    notes = list(runs.recorded.notes)
    native = runs.native
    collected = runs.recorded.collected
    if native.ended and native.code:
        notes.append(f"the program exited with {native.code}: this advice is for a failed run")
    if collected["executed"]:
        notes.append(
            f"{runs.unseen_share:.0%} of the CPU time was in child programs that cannot be "
            "traced: the figures cover the rest"
        )
    if not native.ended:
        notes.append(_STOPPED)
    if runs.cut:
        notes.append(
            "the trace stopped at the time limit: later accesses are missing, and "
            "instructions are assumed to take a typical time"
        )
    if collected["processes"] > 1:
        notes.append(
            f"{collected['processes']} processes were traced as one program, in fractions of the "
            f"{_traced_fractions(runs.programs)}"
        )
    return notes + _on_model(runs, misfit, chained)


def _on_model(runs: ProgramRuns, misfit: float, chained: float) -> list[str]:
    notes = []
    if chained:
        notes.append(
            "the run took longer than its instructions explain; to match its time, "
            f"{chained:.0%} of the loads with no known address dependence are assumed to wait for "
            "the previous load"
        )
    if misfit > 1.02:
        notes.append(
            f"the modeled misses alone take {misfit:.2f} times the measured time: the real caches "
            "are larger than reported, or more misses overlap"
        )
    native_s = runs.native.time_s
    if runs.traced_time_s > SLOW_TRACING_RATIO * native_s:
        notes.append(
            f"tracing took {runs.traced_time_s / native_s:.0f} times as long as the program: "
            f"to trace it faster, {HOW_TO_INSTRUMENT}"
        )
    return notes
