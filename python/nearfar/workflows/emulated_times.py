"""The native runs of a program whose times ``nearfar advise --emulate`` uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nearfar.place.memory_costs import Memory
    from nearfar.place.native_run import NativeRun
    from nearfar.place.traced import ProgramTrace
    from nearfar.records.advice import ObservedProgram
    from nearfar.records.profile import Host
    from nearfar.tracing.caches import Caches
    from nearfar.tracing.recording import Recorded


@dataclass(frozen=True)
class KernelTime:
    """Kernel time of a run with the heap on small pages, and the first-touch time of such a
    page."""

    system_s: float
    small_touch_ns: float

    def with_heap_on(self, traced: ProgramTrace, near: Memory) -> float:
        """Kernel time with the heap on near memory, in s.

        Computed from a run with small pages, because first touches of large pages can dominate
        kernel time and leave only noise after subtraction.
        """
        touched = traced.touched.large if near.large_pages else traced.touched.small
        heap = [site.number for site in traced.sites if site.kind == "heap"]
        small_s = sum(traced.touched.small[n] for n in heap) * self.small_touch_ns * 1e-9
        near_s = sum(touched[n] for n in heap) * near.touch * 1e-9
        return max(self.system_s - small_s, 0.0) + near_s


@dataclass(frozen=True)
class ProgramRuns:
    """The runs of the program."""

    native: NativeRun
    kernel: KernelTime | None
    recorded: Recorded
    traced: ProgramTrace
    host: Host
    caches: Caches
    traced_time_s: float
    programs: list[ObservedProgram]

    @property
    def cut(self) -> bool:
        """Whether only a part of the run was traced."""
        return self.recorded.cut or not self.native.ended

    @property
    def unseen_share(self) -> float:
        """Fraction of the CPU time in untraced programs."""
        return self.recorded.unseen_share(self.native.cpu_s)
