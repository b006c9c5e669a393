"""The observation of a program, in the form that advice uses for all ways of observing."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nearfar.errors import BadInputError, StoppedProgramError
from nearfar.place import preload
from nearfar.place.costing import CostModel
from nearfar.place.memory_costs import Memory, memory_of
from nearfar.place.own_load import RunTimes
from nearfar.place.program_data import ProgramData
from nearfar.place.uncertainty import LossFactors
from nearfar.process.elf import ignores_preload
from nearfar.process.program_file import program_file
from nearfar.process.stdin import StandardInput
from nearfar.profiles import is_profile
from nearfar.records.choices import DEFAULT_TIER
from nearfar.records.figures import Origin, Provenance
from nearfar.tracing.recording import ending_of
from nearfar.workflows.host_here import HostChoice
from nearfar.workflows.memories import tier_profile

if TYPE_CHECKING:
    from nearfar.records.profile import Host, Profile
    from nearfar.tracing.caches import Caches


@dataclass(frozen=True)
class AdviceRequest:
    """The parameters of ``nearfar advise``.

    The subject is one of ``program`` (to start), ``pid`` (a running process) and ``perf`` (a file).
    ``peaks``: measure the bandwidth of all threads on tiers.
    """

    program: tuple[str, ...]
    budget: int | None
    far: tuple[str, ...]
    near: str
    host: HostChoice
    time_s: float
    ignore_failure: bool = False
    stdin: StandardInput = field(default_factory=StandardInput)
    emulate: bool = False
    pid: int | None = None
    perf: str | None = None
    background: tuple[str, ...] = ()
    whole_sites: bool = False
    peaks: bool = False

    def name(self) -> str:
        """The subject of the advice, as messages name it."""
        if self.perf is not None:
            return self.perf
        return self.program[0] if self.pid is None else f"process {self.pid}"

    def require_subject(self) -> None:
        """Raise BadInputError unless exactly one subject is named, and --emulate can observe it."""
        if [bool(self.program), self.pid is not None, self.perf is not None].count(True) != 1:
            raise BadInputError(
                "name one of: a program after --, a running process with --pid, a file with --perf",
                "nearfar advise -- ./program, or nearfar advise --pid PID, or --perf perf.data",
            )
        if self.emulate and not self.program:
            running = self.perf is None
            what, flag = ("a running process", "--pid") if running else ("a file", "--perf")
            raise BadInputError(f"{what} cannot be emulated", f"remove --emulate or {flag}")


@dataclass(frozen=True)
class NearMemory:
    """Near memory, and the memory that the program was observed on."""

    profile: Profile
    memory: Memory
    run_profile: Profile
    run_memory: Memory

    @property
    def is_run_memory(self) -> bool:
        """Whether the program was observed on near memory."""
        return self.run_memory is self.memory

    def times(
        self, wall_s: float, cpu_s: float, near_ns: Callable[[], float]
    ) -> tuple[float, float]:
        """Wall and CPU time with all data near, from the observed ones. ``near_ns``: predicts the
        CPU time."""
        if self.is_run_memory:
            return wall_s, cpu_s
        ratio = near_ns() / (cpu_s * 1e9) if cpu_s > 0 else 1.0
        return RunTimes(wall_s, cpu_s).wall_at(ratio), cpu_s * ratio

    @staticmethod
    def of(request: AdviceRequest, profile: Profile, host: Host, resident_bytes: int) -> NearMemory:
        """``profile``: of near memory, under its background load."""
        name = observed_on(request)
        if name == request.near:
            memory = memory_of(profile)
            return NearMemory(profile, memory, profile, memory)
        run_profile = tier_profile(host, name, resident_bytes)
        run_memory = memory_of(run_profile)
        return NearMemory(profile, memory_of(profile, run_memory), run_profile, run_memory)

    def with_run_memory(self, run_memory: Memory) -> NearMemory:
        """These memories, with first-touch times as they were in this run."""
        if self.is_run_memory:
            return replace(self, memory=run_memory, run_memory=run_memory)
        return replace(self, memory=memory_of(self.profile, run_memory), run_memory=run_memory)

    def fields(self, wall_s: float, cpu_s: float) -> dict[str, Any]:
        """Keywords of the result: what was measured, if near times are predicted from it."""
        if self.is_run_memory:
            return {}
        return {
            "observed_on": self.run_profile.name,
            "observed_latency_ns": self.run_memory.latency,
            "time_observed_s": wall_s,
            "cpu_observed_s": cpu_s,
        }

    def provenance(self, times: tuple[Provenance, Provenance]) -> dict[str, Provenance]:
        """Provenance of wall and CPU time near; ``times``: provenance of the observed ones."""
        names = ("time", "cpu")
        if self.is_run_memory:
            return {f"{n}_near_s": each for n, each in zip(names, times, strict=True)}
        note = (
            f"predicted from the run on {self.run_profile.name} of this machine, which answers in "
            f"{self.run_memory.latency:.0f} ns"
        )
        near = Provenance(origin=Origin.MODELLED, statistic="model", samples=0, note=note)
        return {
            **{f"{n}_near_s": near for n in names},
            **{f"{n}_observed_s": each for n, each in zip(names, times, strict=True)},
            "observed_latency_ns": _latency_provenance(self.run_profile),
        }


#: Near memory on a host, for a program of this many resident bytes.
NearOf = Callable[["Host", int], NearMemory]


@dataclass(frozen=True)
class Observation:
    """A program that was observed, and a model of its costs.

    ``time_s``, ``cpu_s``: wall and CPU time with all data near. ``variants``: see
    ``AdviceInputs``. ``fields``: keywords of the result that only this way of
    observing has, and ``provenance`` of them. ``warnings``: what is particular to these runs.
    ``disturbed``: other programs ran meanwhile.
    """

    data: ProgramData
    coster: CostModel
    variants: Callable[[Memory, Sequence[list[int]]], list[list[float]]]
    near: NearMemory
    time_s: float
    cpu_s: float
    resident_bytes: int
    host: Host
    caches: Caches
    loss: LossFactors = field(default_factory=LossFactors)
    fields: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Provenance] = field(default_factory=dict)
    limits: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    disturbed: bool = False


def near_heap_environment(request: AdviceRequest) -> dict[str, str] | None:
    """Environment variables that place the heap on the near tier.

    None if that is ``dram`` or a profile, or if no library can be preloaded into the program.
    """
    near = request.near
    if (
        is_profile(near)
        or near == DEFAULT_TIER
        or ignores_preload(program_file(request.program[0]))
    ):
        return None
    variables = preload.environment(preload.Placement(None, {"near": near}), None)
    preload.check(variables)
    return variables


def observed_on(request: AdviceRequest) -> str:
    """The memory that the program's data is on while it is observed.

    For a file of samples: near memory, which describes the machine of the file. For a program whose
    heap can be placed on the near tier: that tier. Otherwise ``dram``.
    """
    if request.perf is not None:
        return request.near
    if request.program and near_heap_environment(request) is not None:
        return request.near
    return DEFAULT_TIER


def _latency_provenance(profile: Profile) -> Provenance:
    figure = profile.figure("read_latency_ns")
    note = "; ".join(filter(None, (profile.source_of("read_latency_ns"), figure.note)))
    origin = figure.origin or Origin.CLAIMED
    return Provenance(origin=origin, statistic="fit", samples=0, note=note)


#: Exit codes of a shell for programs that these signals ended: it interrupts a verb, too.
_STOPPED = frozenset(128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


def refuse_failure(request: AdviceRequest, code: int, circumstance: str) -> None:
    """Raise BadInputError for a program that failed, unless that is accepted. Raises
    StoppedProgramError if Ctrl-C ended it, or a signal that was passed on to it.

    ``circumstance``: how it was run, for the message, such as "under the emulator".
    """
    if request.ignore_failure:
        return
    if code in _STOPPED:
        raise StoppedProgramError(
            f"interrupted: {request.program[0]} {ending_of(code)}, {circumstance}",
            "let it end; or, for a program that has to be stopped, give --ignore-failure, and "
            "advice is that of the time until then",
        )
    given = request.stdin.words if request.stdin.path != os.devnull else os.devnull
    raise BadInputError(
        f"{request.program[0]} {ending_of(code)}, {circumstance}: no advice on a failed run",
        f"see why: {shlex.join(request.program)} < {shlex.quote(given)}; or accept the exit code "
        "with --ignore-failure",
    )


def tiers_of(request: AdviceRequest) -> list[str]:
    """The memories that are tiers of this machine."""
    names = dict.fromkeys([request.near, *request.far, observed_on(request)])
    return [name for name in names if not is_profile(name)]
