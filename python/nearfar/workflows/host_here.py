"""The host profile that an answer uses: a named one, or that of this machine, measured once.

The measurement is stored (``profiles.stored_host``) and reused. A first one takes at most half a
minute and is provisional; ``nearfar study`` spreads a complete one over its minutes. A memory of
this machine that was not measured yet is added to the stored host.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError, MachineError, NearfarError, from_native
from nearfar.noise import Watch
from nearfar.profiles import THIS, load_host, stored_host
from nearfar.records.choices import DEFAULT_TIER
from nearfar.records.profile import Host

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nearfar.measure.host import HostMeter
    from nearfar.measure.session import Session
    from nearfar.records.run import Skipped

#: Time limits of the first measurement of this machine, and of an additional memory.
_FIRST_S, _MORE_S = 25.0, 10.0
#: Number of epochs for an additional memory.
_MORE_EPOCHS = 3
#: Fraction of a study's time for the host.
STUDY_SHARE = 0.2
#: A shorter study measures no host.
_MIN_STUDY_S = 30.0


@dataclass(frozen=True)
class HostChoice:
    """The requested host."""

    name: str = THIS
    #: Whether this machine is measured again.
    remeasure: bool = False
    #: A given size of the last cache, which is then not measured.
    llc: str | None = None
    #: The CPU to measure on; the result is then not stored.
    cpu: int | None = None


def host_for(choice: HostChoice, session: Session, tiers: Sequence[str] = ()) -> Host:
    """The host profile, with figures of these tiers of this machine.

    Raises BadInputError for an unknown name and for an invalid tier, MachineError if this machine
    cannot be measured.
    """
    from nearfar.measure.memory import on_pages

    if choice.name == THIS and choice.cpu is not None:
        return _measured(session, choice.cpu, ())
    # Only the caches are used. With the last one given, those of this machine are in its file.
    if choice.llc is not None and not tiers and not choice.remeasure:
        return load_host(choice.name)
    if choice.name == THIS:
        return _here(session, tiers, remeasure=choice.remeasure)
    if choice.remeasure:
        raise BadInputError(
            f"--remeasure has no effect on --host {choice.name}", "remove it, or use --host this"
        )
    host = load_host(choice.name)
    lacking = [tier for tier in tiers if on_pages(tier) not in host.memories]
    if not lacking:
        return host
    here = _here(session, lacking, remeasure=False)
    return host.model_copy(
        update={
            "memories": {**here.memories, **host.memories},
            "sources": {**here.sources, **host.sources},
        }
    )


def unused_latency(name: str, instead: str) -> list[str]:
    """A warning if a named host has a latency of near memory, which the caller does not use.

    ``instead``: what the caller uses. Empty if there is nothing to warn of.
    """
    figure = None if name == THIS else load_host(name).figures.get("near_read_latency_ns")
    if figure is None:
        return []
    return [f"the near_read_latency_ns of host {name}, {figure.value:g}, is not used: {instead}"]


def _here(session: Session, tiers: Sequence[str], *, remeasure: bool) -> Host:
    from nearfar._native import NativeError
    from nearfar.measure.memory import on_pages

    stored = stored_host.read(session.machine_id)
    if stored.why_not:
        session.progress.note(f"{stored.why_not}: measuring this machine again")
    host = stored.host
    wanted = dict.fromkeys(map(on_pages, tiers))
    try:
        if host is None or remeasure:
            host = _measured(session, cpu_here(), list(dict.fromkeys([DEFAULT_TIER, *tiers])))
        elif lacking := [tier for tier in wanted if tier not in host.memories]:
            host = _with_more(session, host, lacking)
        else:
            return host
    except NativeError as error:
        raise from_native(error) from None
    _keep(session, host)
    return host


def cpu_here() -> int:
    """The CPU that measures."""
    return min(os.sched_getaffinity(0))


def _measured(session: Session, cpu: int, tiers: Sequence[str]) -> Host:
    """Measure this machine, in at most half a minute."""
    from nearfar.measure.host import HostMeter

    session.progress.note(
        "measuring this machine, once, in at most half a minute; nearfar study is more thorough"
    )
    meter = HostMeter(session, cpu, tiers)
    _repeat(meter.epoch, _FIRST_S)
    return meter.host()


def _repeat(epoch: Callable[[], None], limit_s: float, most: int | None = None) -> None:
    """Run epochs until another one would exceed the time; at least one, and at most ``most``."""
    begin, done = time.monotonic(), 0
    while True:
        epoch()
        done += 1
        spent_s = time.monotonic() - begin
        if done == most or spent_s * (done + 1) / done > limit_s:
            return


def _with_more(session: Session, host: Host, tiers: Sequence[str]) -> Host:
    """The host with additional memories, which are measured now."""
    from nearfar.measure.host import beyond_caches, meters_of
    from nearfar.measure.host_figures import SOURCE

    session.progress.note(f"measuring {', '.join(tiers)} of this machine, once")
    meters = meters_of(tiers, cpu_here(), beyond_caches(host.figures.get("l3_bytes")))
    seeds = iter(range(session.seed, session.seed + _MORE_EPOCHS))
    watch = Watch(", ".join(tiers))

    def epoch() -> None:
        seed = next(seeds)
        for meter in meters:
            meter.epoch(seed)

    _repeat(epoch, _MORE_S, _MORE_EPOCHS)
    for meter in meters:
        watch.threads(meter.samples.usages)
    session.noise.judge(watch)
    disturbed = watch.verdict().noisy
    memories = dict(host.memories)
    for meter in meters:
        memories |= meter.figures(SOURCE, short=True, disturbed=disturbed)
    return host.model_copy(update={"memories": memories})


def _keep(session: Session, host: Host) -> None:
    """Store a host. An answer is not lost because that failed."""
    try:
        stored_host.write(host, session.machine_id)
    except MachineError as error:
        session.progress.note(f"the host is not stored: {error.what} (next: {error.next_step})")


def host_budget_s(time_s: float) -> float:
    """Seconds of a study that are for the host."""
    return STUDY_SHARE * time_s if time_s >= _MIN_STUDY_S else 0.0


class StudiedHost:
    """The host of this machine, measured between the sections of a study."""

    def __init__(self, session: Session, tiers: Sequence[str], time_s: float) -> None:
        """``time_s``: of the whole study; ``budget_s`` of it are for the host."""
        self._session, self._tiers = session, tiers
        self.budget_s = host_budget_s(time_s)
        self._done = not self.budget_s
        self._spacing_s = time_s / 8
        self._meter: HostMeter | None = None
        self._spent_s = self._last_s = 0.0
        self._next = time.monotonic()

    def epoch(self) -> None:
        """Measure one more epoch if one is due and time is left.

        After a failure, a note is printed and no more epochs are measured.
        """
        from nearfar._native import NativeError
        from nearfar.measure.host import HostMeter

        now = time.monotonic()
        if self._done or now < self._next or self._spent_s + self._last_s > self.budget_s:
            return
        try:
            if self._meter is None:
                self._meter = HostMeter(self._session, cpu_here(), self._tiers)
            self._meter.epoch()
            if stored_host.read(self._session.machine_id).host is None:
                _keep(self._session, self._meter.host())  # later sections predict with it
        except (NearfarError, NativeError) as failure:
            error = failure if isinstance(failure, NearfarError) else from_native(failure)
            self._session.progress.note(f"this host was not measured: {error.what}")
            self._done, self._meter = True, None
        self._last_s = time.monotonic() - now
        self._spent_s += self._last_s
        self._next = now + self._spacing_s

    def keep(self) -> list[Skipped]:
        """Store what was measured, unless the stored host is more complete or was less disturbed.

        Returns what is missing in the stored host.
        """
        if self._meter is None or not self._meter.epochs:
            return []
        host = self._meter.host()
        before = stored_host.read(self._session.machine_id).host
        if before is not None and _quality(before) > _quality(host):
            return _missing(before)
        others = {} if before is None else before.memories
        _keep(self._session, host.model_copy(update={"memories": {**others, **host.memories}}))
        self._session.progress.note(summary(host))
        return _missing(host)


def _quality(host: Host) -> tuple[bool, bool, int]:
    """What makes one measurement of this machine better than another: the first difference."""
    from nearfar.measure.host import WHOLE_EPOCHS

    known = host.measured
    if known is None:
        return False, False, 0
    return not known.provisional, not known.disturbed, min(known.epochs, WHOLE_EPOCHS)


def _missing(host: Host) -> list[Skipped]:
    from nearfar.measure.host import WHOLE_EPOCHS, WHOLE_S
    from nearfar.records.run import REST_OF_HOST, Skipped
    from nearfar.report.wording import count

    known = host.measured
    if known is None or not known.provisional:
        return []
    why = (
        f"provisional after {count(known.epochs, 'epoch')} ({WHOLE_EPOCHS} over {WHOLE_S:.0f} s "
        "complete it): advise has wider intervals; repeat nearfar study on an idle machine, or "
        "with more --time"
    )
    return [Skipped(section="host profile", what=REST_OF_HOST, why=why)]


def summary(host: Host) -> str:
    """Figures of near memory and of the last cache, and how completely they were measured."""
    from nearfar.measure.memory import on_pages
    from nearfar.report.wording import count, format_interval, format_quantity

    said = []
    near = host.memories.get(on_pages(DEFAULT_TIER), {}).get("read_latency_ns")
    for name, key, figure in (
        ("near memory", "read_latency_ns", near),
        ("last cache", "l3_bytes", host.figures.get("l3_bytes")),
    ):
        if figure is not None and figure.value is not None:
            span = format_interval(key, *figure.interval())
            said.append(f"{name} {format_quantity(key, figure.value)} ({span})")
    known = host.measured
    if known is None:
        return f"this host, as the system reports it: {', '.join(said)}"
    kind = "provisional" if known.provisional else "complete"
    if known.disturbed:
        kind += " (other programs ran)"
    return f"this host, {kind} after {count(known.epochs, 'epoch')}: {', '.join(said)}"
