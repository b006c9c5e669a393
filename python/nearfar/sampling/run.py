"""Run a program, or attach to a process, and sample its stalls.

Events of the kernel are opened on the thread that starts the program, and its children inherit
them; a second thread takes the samples. Nothing is left in the program or on disk.
"""

from __future__ import annotations

import contextlib
import os
import resource
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.place.sample_records import CLOCK, FAULT, ordered_samples
from nearfar.process.helpers import preloadable
from nearfar.process.launch import StartError, run
from nearfar.process.running_process import queued_s, resident_bytes
from nearfar.sampling.residency import Residency

if TYPE_CHECKING:
    from nearfar._native import Sampler
    from nearfar.place.held_data import Resident

#: CPU time between two samples of a thread. A stream is recognized by addresses of samples that are
#: near in time: at 1 ms a triad over 64 MiB was taken for random accesses on a loaded machine. In a
#: virtual machine each sample programs a timer of the hypervisor, which can take 15 us.
PERIOD_NS = 500_000
#: Fraction of the CPU time that the samples of a program may take: the clock runs in bursts if they
#: took more. The allocation log takes up to another 3 %.
MAX_COST = 0.01
#: Period that is requested of signals; the kernel rounds it up to its tick, of 1 to 10 ms.
_SIGNAL_PERIOD_NS = 1_000_000
#: Unsampled fraction of the CPU time above which a note is printed.
_MUCH_UNSAMPLED = 0.2
#: Samples of a thread that is never idle, if a running process is sampled.
_ATTACHED_SAMPLES = 7_500
#: Range of the period for a running process.
_ATTACHED_PERIODS_NS = (1_000_000, 4_000_000)
#: Page faults between two samples. On large pages every fault is sampled, because they are few.
FAULT_PERIOD = 16
#: Samples that a short run should have.
_WANTED_SAMPLES = 4_000
#: Shortest period.
_MIN_PERIOD_NS = 100_000
#: Fewer samples than this are refused.
MIN_SAMPLES = 50
#: Why the kernel's events are not used.
REFUSED = "the kernel refuses perf_event_open"
#: Which programs signals miss.
UNREACHED = (
    "signals do not reach programs that are statically linked (Go) or set-user-ID, and threads "
    "that block SIGPROF"
)
_LIBRARY = "libnearfar-allocation-log.so"
_VARIABLE = "NEARFAR_ALLOCATION_LOG"
#: Time between two readings of the rings: at 2,000 samples a second they fill in 2 s.
_POLL_S = 0.03


@dataclass
class Sampled:
    """Samples of a run. ``wall_s``: less the time for which the first thread waited for a CPU,
    which other programs cause. CPU times of all processes together; ``ended``: not stopped after
    the time limit; ``programs``: names with their samples, most first; ``resident``: pages of a
    process that ran before; ``by_signals``: the kernel refused its events; ``limits``: what only
    these samples assume."""

    sampler: Sampler
    period_ns: int
    wall_s: float
    user_s: float
    system_s: float
    resident_bytes: int
    page_faults: int
    programs: list[tuple[str, int]]
    code: int = 0
    ended: bool = True
    pid: int | None = None
    resident: Resident | None = None
    by_signals: bool = False
    notes: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)

    @property
    def cpu_s(self) -> float:
        """CPU time in user mode and in the kernel."""
        return self.user_s + self.system_s

    def with_times_of(self, other: Sampled) -> Sampled:
        """The same samples with the times of another run."""
        return replace(self, wall_s=other.wall_s, user_s=other.user_s, system_s=other.system_s)


def period_for(user_s: float) -> int:
    """The sampling period for a program of this CPU time, in ns."""
    wanted = round(user_s * 1e9 / _WANTED_SAMPLES)
    return min(max(wanted, _MIN_PERIOD_NS), PERIOD_NS)


def sample_program(
    program: Sequence[str],
    placed: Mapping[str, str] | None,
    stdin: str,
    limit_s: float,
    period_ns: int,
    *,
    large_pages: bool = False,
    max_cost: float = 0.0,
) -> Sampled:
    """Run a program to its end. ``placed``: environment that places its heap; ``stdin``: a file;
    ``large_pages``: most memory is on large pages; ``max_cost``: fraction of the CPU time that
    samples may take, 0: any.

    Raises BadInputError if it cannot be started, NativeError if the kernel refuses samples.
    """
    sampler, by_signals = _opened(period_ns, 1 if large_pages else FAULT_PERIOD, max_cost)
    environment = with_log(dict(placed) if placed else dict(os.environ), sampler.log_value())
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    with Polling(sampler) as polling:
        try:
            _, code = run(program, environment, alone=True, limit_s=limit_s, stdin=stdin)
        except StartError as error:
            raise BadInputError(
                f"{program[0]} cannot be started: {error.why}",
                f"look with `head -1 {program[0]}` and `file {program[0]}`",
            ) from None
    wall_s = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = Sampled(
        sampler,
        sampler.period_ns(),
        max(wall_s - polling.queued_s, 0.0),
        after.ru_utime - before.ru_utime,
        after.ru_stime - before.ru_stime,
        after.ru_maxrss * 1024,
        after.ru_minflt - before.ru_minflt,
        _programs(sampler),
        code,
        ended=wall_s < limit_s,
    )
    return _by_signals(found) if by_signals else found


def _opened(period_ns: int, fault_period: int, max_cost: float) -> tuple[Sampler, bool]:
    """A sampler of programs that this thread starts, and whether it is by signals, as the kernel
    refuses its events."""
    from nearfar._native import NativeError, Sampler

    try:
        return Sampler.open(period_ns, fault_period, max_cost=max_cost), False
    except NativeError as error:
        if error.args[0] not in {"no_permission", "unsupported"}:
            raise
        return Sampler.open(_SIGNAL_PERIOD_NS, 0, by_signals=True), True


def _by_signals(found: Sampled) -> Sampled:
    """A run that was sampled by signals, with the limits of such samples."""
    samples = ordered_samples(found.sampler)
    periods = {kind: samples["period"][samples["kind"] == kind] for kind in (CLOCK, FAULT)}
    clock = periods[CLOCK]
    found.period_ns = round(float(clock.mean())) if len(clock) else _SIGNAL_PERIOD_NS
    found.page_faults = int(periods[FAULT].sum())
    found.by_signals = True
    found.notes.append(
        f"{REFUSED}: the programs were sampled by SIGPROF, every {found.period_ns * 1e-6:.1f} ms "
        "of CPU time; for more samples set kernel.perf_event_paranoid to at most 2, or permit "
        "perf_event_open in the container"
    )
    sampled_s = float(clock.sum()) * 1e-9 * found.sampler.every()
    if sampled_s < (1 - _MUCH_UNSAMPLED) * found.user_s:
        found.notes.append(
            f"{1 - sampled_s / found.user_s:.0%} of the CPU time was not sampled: {UNREACHED}"
        )
    found.limits.append("first touches are those of pages in memory at some times of the run")
    return found


def attached_period_ns(time_s: float) -> int:
    """The period for a running process: as long as precision permits, because a service must not
    be slowed."""
    shortest, longest = _ATTACHED_PERIODS_NS
    return min(max(int(time_s * 1e9 / _ATTACHED_SAMPLES), shortest), longest)


def sample_process(pid: int, time_s: float) -> Sampled:
    """Sample a running process and its descendants for a time, without stopping them.

    Raises BadInputError if there is no such process of this user.
    """
    from nearfar._native import NativeError, Sampler

    period_ns = attached_period_ns(time_s)
    try:
        sampler = Sampler.attach(pid, period_ns, 0)
    except NativeError as error:
        if error.args[0] != "not_found":
            raise
        raise BadInputError(error.args[1], error.args[2]) from None
    before = _system_s(sampler)
    begin = time.monotonic()
    residency = Residency()
    with Polling(sampler, residency), contextlib.suppress(ProcessLookupError):
        _wait(pid, time_s)
    wall_s = time.monotonic() - begin
    residency.look(sampler)
    programs = _programs(sampler)
    period_ns = sampler.period_ns()
    user_s = sum(count for _, count in programs) * period_ns * 1e-9 / sampler.enabled_share()
    return Sampled(
        sampler,
        period_ns,
        wall_s,
        user_s,
        max(_system_s(sampler) - before, 0.0),
        sum(resident_bytes(process) for process, _, _ in sampler.programs()),
        0,
        programs,
        pid=pid,
        resident=residency.resident(),
    )


def _wait(pid: int, time_s: float) -> None:
    """Wait for a time, at most to the end of a process."""
    import select

    handle = os.pidfd_open(pid)
    try:
        select.select([handle], [], [], time_s)
    finally:
        os.close(handle)


class Polling:
    """Takes samples in a second thread, and closes the events at the end."""

    def __init__(self, sampler: Sampler, residency: Residency | None = None) -> None:
        """``residency``: looks at the memory of the processes meanwhile."""
        self._sampler = sampler
        self._residency = residency
        self._done = threading.Event()
        self.queued_s = 0.0  # that the first thread waited for a CPU
        self._thread = threading.Thread(target=self._poll)

    def _poll(self) -> None:
        while not self._done.wait(_POLL_S):
            self._sampler.poll()
            self._note_queue()
            if self._residency is not None:
                self._residency.look_sometimes(self._sampler)

    def _note_queue(self) -> None:
        """Read how long the program's first thread waited for a CPU, as long as it runs."""
        for process, _, _ in self._sampler.programs()[:1]:
            self.queued_s = max(self.queued_s, queued_s(process))

    def __enter__(self) -> Polling:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._sampler.poll()
        self._sampler.stop()


def with_log(environment: dict[str, str], log: str) -> dict[str, str]:
    """The environment with the library that logs allocations, before the user's libraries."""
    libraries = [preloadable(_LIBRARY), environment.get("LD_PRELOAD", "")]
    return {**environment, "LD_PRELOAD": " ".join(filter(None, libraries)), _VARIABLE: log}


def _programs(sampler: Sampler) -> list[tuple[str, int]]:
    counts: Counter[str] = Counter()
    for _, name, samples in sampler.programs():
        counts[os.fsdecode(name)] += samples
    return [(name, count) for name, count in counts.most_common() if count]


def _system_s(sampler: Sampler) -> float:
    """CPU time in the kernel of all sampled processes that run."""
    ticks = 0
    for process, _, _ in sampler.programs():
        with contextlib.suppress(OSError, IndexError, ValueError):
            ticks += int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[12])
    return ticks / os.sysconf("SC_CLK_TCK")
