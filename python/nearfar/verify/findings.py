"""Findings of an exploration: counts, and failures traced to a store."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, field

from nearfar.errors import ExitCode

#: Descriptions of a finding's ``failure``.
FAILURES = {
    "refused": "the image does not open",
    "broken": "an invariant does not hold",
    "lost": "an acknowledged operation is lost",
    "not_atomic": "an operation is there in part",
    "leak": "memory is lost",
    "not_idempotent": "recovery, run twice, gives something else",
    "crashed": "recovery or check crashed",
    "hung": "recovery or check did not end",
    "disagreed": "libpmemobj recovers something else than the replay of its logs",
    "failed": "the program fails on the image",
    "damaged": "the pool is damaged",
}
#: Descriptions of a finding's ``missing``, the cause to fix.
MISSING = {
    "flush": "is never flushed",
    "late_flush": "is flushed too late, after a fence or by another thread, to be durable",
    "fence": "is flushed, but no fence makes it durable",
    "log": "overwrites in place what was not logged",
    "late_log": "overwrites in place what is logged only afterwards: the log holds the new value",
    "in_place": "changes in place what recovery relies on, before the operation is complete",
    "torn": "has more than 8 bytes, and a power failure can leave a part of it",
    "logic": "is durable in order: program, recovery or checker is wrong",
}


#: Descriptions of ``crash_before``, the kind of an event.
EVENTS = {
    "store": "the store",
    "nt_store": "the non-temporal store",
    "flush": "the flush",
    "fence": "the fence",
    "log": "the log call",
    "begin": "the begin of the operation",
    "end": "the end of the operation",
    "tx_begin": "the begin of the transaction",
    "tx_end": "the end of the transaction",
    "load": "the load",
}
#: Descriptions of ``caches_lost``, the crash of two hosts that share a pool.
CRASHES = {
    "host_0": "host 0 died, host 1 went on",
    "host_1": "host 1 died, host 0 went on",
    "all": "power failed, and so did the global persistent flush",
    "none": "power failed, the global persistent flush succeeded",
}


def exit_code_of(verdict: str) -> ExitCode:
    """The exit code of ``clean``, ``violation`` or ``inconclusive``."""
    codes = {"violation": ExitCode.VIOLATION, "inconclusive": ExitCode.MACHINE}
    return codes.get(verdict, ExitCode.OK)


def _called(store: str, caller: str) -> str:
    return f"{store}, called from {caller}," if caller else store


@dataclass(frozen=True)
class BlamedLine:
    """A cache line that the failure requires: durable too early, or not durable yet."""

    address: int
    durable: bool
    store: str
    caller: str = ""
    calls: tuple[str, ...] = ()

    def place(self) -> str:
        """The store, and the calls of the library that made it and of the program's functions."""
        calls = [*filter(None, (self.caller,)), *self.calls]
        return self.store + (f", called from {', '.join(calls)}" if calls else "")


@dataclass(frozen=True)
class Finding:
    """One cause, with the first image that shows it. ``store`` is FILE:LINE.

    ``store_caller`` is the line of the program that called the library which made the store;
    empty if the program made it. ``store_calls``: FILE:LINE of the calls of the program that led
    to this place, innermost first, as far as they are known. ``inlined_into``: FILE:LINE of the
    calls of inlined functions around the store, outward. ``crash_at``: the place of the event
    before which the power fails, a key of EVENTS (``crash_before``); empty at the end of the run,
    and in recovery.
    ``caches_lost`` is a key of CRASHES. Where threads interleave, ``operations`` are those that
    had ended, and ``held`` is the store whose thread waited before its flush.
    """

    failure: str
    what: str
    missing: str
    store: str
    before: str
    event: int
    acknowledged: int
    in_flight: bool
    finished: bool
    during_recovery: bool
    violations: int
    found_at_image: int
    image: str
    lines: list[BlamedLine] = field(default_factory=list)
    replay: str = ""
    store_caller: str = ""
    store_calls: tuple[str, ...] = ()
    before_caller: str = ""
    caches_lost: str = "all"
    operations: list[int] = field(default_factory=list)
    held: str = ""
    inlined_into: tuple[str, ...] = ()
    crash_before: str = ""
    crash_at: str = ""

    def is_certain(self, unplaced: Collection[int] = ()) -> bool:
        """False if it can depend on a store of which the recorder knows neither place nor order
        nor kind, as another thread stored to the same page. ``unplaced``: lines with such stores.

        Where no line is to blame, any of them can be missing from the image.
        """
        if not self.lines:
            return not unplaced
        return all(line.store and line.address not in unplaced for line in self.lines)

    def moment(self) -> str:
        """When the power fails."""
        if self.during_recovery:
            return f"during recovery, before its event {self.event:,}"
        if not self.crash_at:
            return f"at event {self.event:,}"
        kind = EVENTS.get(self.crash_before, self.crash_before)
        return f"before {kind} at {self.crash_at} (event {self.event:,})"

    def sentence(self) -> str:
        """A sentence that states the cause."""
        before = f"the store of {_called(self.before, self.before_caller)}"
        late = " in time" if self.missing == "fence" else ""
        if self.before == self.store:
            before = "a later store of the same source line"
        order = f" before {before}" if self.before else late
        inlined = f" (inlined into {', '.join(self.inlined_into)})" if self.inlined_into else ""
        store = _called(self.store + inlined, self.store_caller)
        missing = MISSING.get(self.missing, self.missing)
        return f"the store of {store} {missing}{order}".rstrip(",")


@dataclass(frozen=True)
class CrashCount:
    """The images of one kind of crash of two hosts, a key of CRASHES."""

    caches_lost: str
    states: int
    states_left: float
    violations: int


@dataclass
class Exploration:
    """Counts of one exploration. ``states_left`` is 0 only if every image was covered."""

    states: int = 0
    states_left: float = 0
    points: int = 0
    violations: int = 0
    recovery_states: int = 0
    confirmed: int = 0
    stores: int = 0
    stores_tried: int = 0
    places: int = 0
    places_tried: int = 0
    cut_off: bool = False
    program_failed: bool = False
    recording_cut_short: bool = False
    time_s: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    interrupted: bool = False
    crashes: list[CrashCount] = field(default_factory=list)  # of two hosts
    reopening: dict[str, object] | None = None  # how images were checked without a checker
    interleavings: int = 0  # of threads, that were found; 0: not looked for
    interleavings_tried: int = 0
    unseen_flushes: bool = False  # the program has flushes that the recorder did not see
    doubtful: int = 0  # images that passed, but of which the program said something unexpected
    unplaced: set[int] = field(default_factory=set)  # lines, as of Finding.is_certain()

    @property
    def verdict(self) -> str:
        """``clean`` only if the program succeeded and each of its stores was explored."""
        if self.violations and not self.uncertain():
            return "violation"
        unseen = (
            self.stores_tried < self.stores
            or (self.stores == 0 and self.states_left > 0)  # only libraries stored
            or self.interleavings_tried < self.interleavings
            or self.recording_cut_short
            or self.doubtful > 0
            or self.only_inspected()
            or self.uncertain()
        )
        return "inconclusive" if unseen or self.program_failed or self.interrupted else "clean"

    def only_inspected(self) -> bool:
        """Whether no program looked at the images: what the pool contains was not checked."""
        return self.reopening is not None and not self.reopening["started"]

    def uncertain(self) -> bool:
        """Whether there are violations, and none is certain."""
        if self.findings and self.unseen_flushes:
            return True
        return bool(self.findings) and not any(
            found.is_certain(self.unplaced) for found in self.findings
        )

    @property
    def states_per_s(self) -> float:
        """Images explored a second, on one thread."""
        return self.states / self.time_s if self.time_s > 0 else 0.0

    def exit_code(self) -> ExitCode:
        """The exit code of the verdict."""
        return ExitCode.INTERRUPTED if self.interrupted else exit_code_of(self.verdict)

    def document(self) -> dict[str, object]:
        """The JSON document."""
        return {
            "verdict": self.verdict,
            "states": self.states,
            "states_left": self.states_left,
            "violations": self.violations,
            "violations_cut_off": self.cut_off,
            "stores": self.stores,
            "stores_tried": self.stores_tried,
            "store_places": self.places,
            "store_places_tried": self.places_tried,
            "states_per_s": self.states_per_s,
            "failure_points": self.points,
            "recovery_states": self.recovery_states,
            "confirmed_states": self.confirmed,
            "time_s": self.time_s,
            "provenance": {"states_per_s": "measured", "time_s": "measured"},
            "findings": [asdict(finding) for finding in self.findings],
            "warnings": self.warnings,
            **({"crashes": [asdict(one) for one in self.crashes]} if self.crashes else {}),
            **({"reopening": self.reopening} if self.reopening else {}),
            **(
                {
                    "interleavings": self.interleavings,
                    "interleavings_tried": self.interleavings_tried,
                }
                if self.interleavings
                else {}
            ),
        }
