"""Settings of memory controllers: row policy, scheduler, write queue, power states, mapping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar._native import SimController
    from nearfar.records.choices import PagePolicy, Scheduler

#: Neighboring lines alternate between channels and bank groups. A stream stays in its open rows.
DEFAULT_MAPPING = "rorabacobgch"

#: Idle time of a row until the row policy "timeout" closes it.
DEFAULT_TIMEOUT_NS = 100.0


@dataclass(frozen=True)
class Controller:
    """Settings of the controllers of both memories. Devices without command timings ignore them.

    ``page_policy``: when a row that no request needs is closed. "open": when a request needs
    another row of the bank. "closed": with its last access. "timeout": ``timeout_ns`` after its
    last access, rounded up to whole clocks. ``write_drain``: numbers of posted writes in a
    channel's queue that start draining, end it, and start it while no read waits. ``row_hit_cap``:
    accesses to an open row after which an older request for another row of the bank goes first;
    None: no limit. ``mapping``: address fields from the highest bits to the lowest, as DRAMsim3
    writes them.
    ``power_down_after_ns``, ``self_refresh_after_ns``: idle time of a rank until it enters this
    state; None: never. Devices without figures of a state do not enter it.
    """

    page_policy: PagePolicy = "open"
    timeout_ns: float = DEFAULT_TIMEOUT_NS
    scheduler: Scheduler = "fr-fcfs"
    row_hit_cap: int | None = None
    write_drain: tuple[int, int, int] = (32, 16, 1)
    mapping: str = DEFAULT_MAPPING
    power_down_after_ns: float | None = None
    self_refresh_after_ns: float | None = None

    def native(self) -> SimController:
        """The settings in the format of the engines. Raises NativeError for contradictory ones."""
        from nearfar import _native

        return _native.SimController(
            self.page_policy,
            self.timeout_ns,
            self.scheduler,
            self.row_hit_cap or 0,
            *self.write_drain,
            self.mapping,
            self.power_down_after_ns,
            self.self_refresh_after_ns,
        )


def parse_write_drain(text: str) -> tuple[int, int, int]:
    """Parse ``FROM:TO:IDLE``. Raises BadInputError."""
    counts = text.split(":")
    if len(counts) != 3 or not all(count.isdecimal() and len(count) < 5 for count in counts):
        raise BadInputError(f"invalid --write-drain {text}", "give three counts, such as 32:16:1")
    start, stop, idle = map(int, counts)
    return start, stop, idle
