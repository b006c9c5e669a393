"""The observation of a program, in the form that advice uses for all ways of observing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nearfar.errors import BadInputError
from nearfar.place.costing import CostModel
from nearfar.place.figures import Memory
from nearfar.place.program_data import ProgramData
from nearfar.place.uncertainty import LossFactors
from nearfar.process.stdin import StandardInput
from nearfar.workflows.host_here import DEFAULT, HostChoice
from nearfar.workflows.memories import is_profile

if TYPE_CHECKING:
    from nearfar.records.profile import Host
    from nearfar.records.shape import Provenance
    from nearfar.tracing.caches import Caches


@dataclass(frozen=True)
class AdviceRequest:
    """Parsed command line: a program to start, a running process, or a file of perf.

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


@dataclass(frozen=True)
class Observation:
    """A program that was observed, and a model of its costs.

    ``variants``: see ``AdviceInputs``. ``fields``: keywords of the result that only this way of
    observing has, and ``provenance`` of them. ``warnings``: what is particular to these runs.
    ``disturbed``: other programs ran meanwhile.
    """

    data: ProgramData
    coster: CostModel
    variants: Callable[[Memory, Sequence[list[int]]], list[list[float]]]
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


def heap_near(wanted: AdviceRequest) -> dict[str, str] | None:
    """Variables that place the heap on a near tier other than its default."""
    from nearfar.place import preload
    from nearfar.place.native_run import check_program
    from nearfar.process.elf import ignores_preload

    near = wanted.near
    if is_profile(near) or near == DEFAULT or ignores_preload(check_program(wanted.program[0])):
        return None
    variables = preload.environment(preload.Placement(None, {"near": near}), None)
    preload.check(variables)
    return variables


def refuse_failure(wanted: AdviceRequest, code: int, where: str) -> None:
    """Raise BadInputError for a program that failed, unless that is accepted."""
    if wanted.ignore_failure:
        return
    from nearfar.tracing.recording import ending_of

    raise BadInputError(
        f"{wanted.program[0]} {ending_of(code)}, {where}: no advice on a failed run",
        "fix its arguments, or accept the exit code with --ignore-failure",
    )


def tiers_of(wanted: AdviceRequest) -> list[str]:
    """The memories that are tiers of this machine."""
    return [name for name in (wanted.near, *wanted.far) if not is_profile(name)]
