"""Move pages of a process to where they belong, gently: in pieces, at a limited rate."""

from __future__ import annotations

import errno
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nearfar.place.attached.kernel_moves import migrated_pages
from nearfar.place.attached.node_tiers import NodeTier, freest
from nearfar.place.attached.page_origins import PageOrigins
from nearfar.records.placement import Ending, Refusal
from nearfar.units import PAGE_BYTES

if TYPE_CHECKING:
    from nearfar._native import ProcessPages
    from nearfar.process.running_process import RunningProcess

#: A run of adjacent pages: address, pages, and node or -errno.
PageRun = tuple[int, int, int]

#: Bytes moved per second by default. Moving at this rate reads and writes 0.5 GB/s of memory, about
#: 2 % of what two channels of DDR4 transfer, and takes about a tenth of a CPU.
DEFAULT_RATE = 256 << 20
#: Pages that one call locates.
_LOCATED_PAGES = 1 << 14
#: Time that a piece takes at the given rate.
_PIECE_S = 0.02
#: Pages that one call moves at most.
_MAX_PIECE_PAGES = 1 << 10

_REFUSALS: dict[int, Refusal] = {
    errno.EBUSY: "busy",
    errno.EACCES: "shared",
    errno.ENOMEM: "no memory",
    errno.ENOENT: "absent",
    errno.EFAULT: "zero page",
}


@dataclass(frozen=True)
class WantedRange:
    """Addresses whose pages belong on a tier. ``rule``: number in the plan; ``region``: address of
    the region."""

    start: int
    end: int
    tier: NodeTier
    rule: int = 0
    region: int = 0


@dataclass
class RangeCount:
    """Bytes in memory, of these on the tier, and bytes that were moved."""

    wanted: int = 0
    placed: int = 0
    moved: int = 0


@dataclass
class Look:
    """Pages that one look at the process found and moved. ``by_range``: counts by rule and region.

    ``back``: pages that were moved before and are on another node again; ``migrations``: pages that
    anything but this process moved on the machine since the last look.
    """

    by_range: dict[tuple[int, int], RangeCount] = field(default_factory=dict)
    tiers: dict[tuple[int, int], str] = field(default_factory=dict)
    refused: Counter[Refusal] = field(default_factory=Counter)
    by_tier: Counter[str] = field(default_factory=Counter)
    full: set[frozenset[int]] = field(default_factory=set)
    back: int = 0
    migrations: int = 0
    complete: bool = False

    def total(self) -> RangeCount:
        """The sum of all ranges."""
        counts = self.by_range.values()
        return RangeCount(
            sum(count.wanted for count in counts),
            sum(count.placed for count in counts),
            sum(count.moved for count in counts),
        )

    def undone_bytes(self) -> int:
        """Bytes that something moved back. Pages that the program freed and touched again are new
        ones, and no migration."""
        return min(self.back, self.migrations) * PAGE_BYTES

    def of(self, wanted: WantedRange) -> RangeCount:
        """The counts of the range's rule in its region."""
        self.tiers[wanted.rule, wanted.region] = wanted.tier.name
        return self.by_range.setdefault((wanted.rule, wanted.region), RangeCount())


class StoppedError(Exception):
    """The look was not finished."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending)
        self.ending = ending


@dataclass(frozen=True)
class MoveLimits:
    """``rate``: bytes per second, None for no limit. ``deadline``: of ``time.monotonic()``.
    ``shared``: also move pages that other processes map, which needs CAP_SYS_NICE."""

    rate: float | None = DEFAULT_RATE
    deadline: float | None = None
    shared: bool = False


class PageMover:
    """Looks at a process as often as ``look`` is called."""

    def __init__(
        self,
        program: RunningProcess,
        pages: ProcessPages,
        limits: MoveLimits,
        journal: Callable[[Sequence[PageRun]], None],
        progress: Callable[[Look], None],
    ) -> None:
        """``journal`` receives pages with their node before they are moved."""
        self._program = program
        self._pages = pages
        self._limits = limits
        self._journal = journal
        self._progress = progress
        self._moved = PageOrigins()
        self._seen_until = 0
        self._due = 0.0
        self._migrated: int | None = None
        self.current = Look()

    def look(self, ranges: Iterable[WantedRange]) -> Look:
        """Move the pages of these ranges, which are in the order of addresses.

        Raises StoppedError if the program or the time ends meanwhile; ``current`` has the part.
        """
        look = self.current = Look()
        if self._migrated is not None:
            look.migrations = max(migrated_pages() - self._migrated, 0)
        self._seen_until = 0
        for wanted in ranges:
            self._place(wanted, look)
        self.check()
        look.complete = True
        self._migrated = migrated_pages()
        return look

    def check(self) -> None:
        """Raise StoppedError if the program has ended or started another one, or the time is
        over."""
        if not self._pages.is_current():
            ended = self._program.is_exiting()
            raise StoppedError("program ended" if ended else "program replaced")
        deadline = self._limits.deadline
        if deadline is not None and time.monotonic() >= deadline:
            raise StoppedError("time")

    def pause(self, seconds: float) -> None:
        """Wait, at most to the end of the program or of the time."""
        deadline = self._limits.deadline
        if deadline is not None:
            seconds = min(seconds, deadline - time.monotonic())
        self._program.wait(seconds)
        self.check()

    def _place(self, wanted: WantedRange, look: Look) -> None:
        at = wanted.start
        look.of(wanted)
        while at < wanted.end:
            self.check()
            runs, at = self._located(at, wanted.end)
            self._move(self._misplaced(runs, wanted, look), wanted, look)
            self._progress(look)

    def _located(self, start: int, end: int) -> tuple[list[PageRun], int]:
        from nearfar._native import NativeError

        try:
            return self._pages.locate(start, end, _LOCATED_PAGES)
        except NativeError as error:
            raise self._gone(error) from None

    def _gone(self, error: Exception) -> Exception:
        """The error, unless its reason is the end of the program."""
        if error.args[0] == "not_found" or not self._pages.is_current():
            return StoppedError(
                "program ended" if self._program.is_exiting() else "program replaced"
            )
        return error

    def _misplaced(self, runs: Iterable[PageRun], wanted: WantedRange, look: Look) -> list[PageRun]:
        """Count pages, and return those that have to move."""
        found: list[PageRun] = []
        count = look.of(wanted)
        for run in runs:
            address, pages, node = run
            self._forget_until(address, pages)
            if node < 0:
                look.refused[_refusal(node)] += pages * PAGE_BYTES
            elif node in wanted.tier.nodes:
                count.wanted += pages * PAGE_BYTES
                count.placed += pages * PAGE_BYTES
                look.by_tier[wanted.tier.name] += pages * PAGE_BYTES
            else:
                count.wanted += pages * PAGE_BYTES
                look.back += self._moved.count(address, pages)
                found.append(run)
        return found

    def _forget_until(self, address: int, pages: int) -> None:
        """Forget the origins of unmapped pages between the last ones and these: pages that appear
        there later are new."""
        if self._seen_until < address:
            self._moved.clear(self._seen_until, address)
        self._seen_until = max(self._seen_until, address + pages * PAGE_BYTES)

    def _move(self, runs: Iterable[PageRun], wanted: WantedRange, look: Look) -> None:
        piece: list[PageRun] = []
        size, most = 0, self._piece_pages()
        for address, pages, node in runs:
            done = 0
            while done < pages:
                part = min(pages - done, most - size)
                piece.append((address + done * PAGE_BYTES, part, node))
                done += part
                size += part
                if size == most:
                    self._move_piece(piece, wanted, look)
                    piece, size = [], 0
        if piece:
            self._move_piece(piece, wanted, look)

    def _piece_pages(self) -> int:
        if self._limits.rate is None:
            return _MAX_PIECE_PAGES
        return min(max(int(self._limits.rate * _PIECE_S) // PAGE_BYTES, 1), _MAX_PIECE_PAGES)

    def _move_piece(self, piece: list[PageRun], wanted: WantedRange, look: Look) -> None:
        from nearfar._native import NativeError

        tier = wanted.tier
        size = sum(pages for _, pages, _ in piece) * PAGE_BYTES
        if tier.nodes in look.full:
            look.refused["no memory"] += size
            return
        if tier.capacity_bytes is not None and (
            look.by_tier[tier.name] + size > tier.capacity_bytes
        ):
            look.refused["capacity"] += size
            return
        self.check()
        self._journal(piece)
        try:
            done = self._pages.move(piece, freest(tier.nodes), self._limits.shared)
        except NativeError as error:
            raise self._gone(error) from None
        moved = self._count(done, wanted, look)
        self._progress(look)
        self._pace(moved)

    def _count(self, done: Iterable[PageRun], wanted: WantedRange, look: Look) -> int:
        count = look.of(wanted)
        moved = 0
        for address, pages, node in done:
            size = pages * PAGE_BYTES
            if node in wanted.tier.nodes:
                moved += size
                self._moved.set_first(address, pages, 0)
                continue
            reason = _refusal(node)
            look.refused[reason] += size
            if reason in ("absent", "zero page"):
                count.wanted -= size
            if reason == "no memory":
                look.full.add(wanted.tier.nodes)
        count.placed += moved
        count.moved += moved
        look.by_tier[wanted.tier.name] += moved
        return moved

    def _pace(self, moved: int) -> None:
        """Wait until the rate permits more."""
        if self._limits.rate is None:
            return
        now = time.monotonic()
        self._due = max(self._due, now) + moved / self._limits.rate
        if self._due - now >= _PIECE_S / 2:
            self.pause(self._due - now)


def _refusal(node: int) -> Refusal:
    return _REFUSALS.get(-node, "other") if node < 0 else "busy"
