"""A simulated memory for co-simulation: a program of the user drives it, clock by clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from nearfar.errors import BadInputError, from_native
from nearfar.profiles import load_profile
from nearfar.simulation.controller import Controller
from nearfar.simulation.devices import Device

#: Called with the address of a read and the clock at which its data arrived.
Done = Callable[[int, int], None]


@dataclass(frozen=True)
class MemoryActivity:
    """Work of a memory: numbers of 64-byte accesses and of commands, and energy in J by cause.

    ``energy_J`` is empty for a device without energy figures.
    """

    clocks: int
    reads: int
    writes: int
    row_hits: int
    activates: int
    refreshes: int
    energy_J: dict[str, float]  # noqa: N815 - the joule is a capital


@dataclass
class SimulatedMemory:
    """A memory in the exact engine, for co-simulation with a CPU or accelerator model.

    ``device``: name or file of a device profile. ``read_queue``: capacity of a channel's read
    queue. Raises BadInputError for an invalid profile or setting. Not thread-safe.

        memory = SimulatedMemory("ddr4-3200")
        memory.enqueue(0x1000, done=lambda address, clock: print(hex(address), clock))
        memory.tick(100)
    """

    device: str = "ddr4-3200"
    controller: Controller = field(default_factory=Controller)
    read_queue: int = 32

    def __post_init__(self) -> None:
        from nearfar import _native

        if self.read_queue < 1:
            raise BadInputError(f"invalid read_queue {self.read_queue}", "give 1 or more")
        chosen = Device.of(load_profile(self.device))
        try:
            self._memory = _native.Cosimulation(
                chosen.native, self.controller.native(), self.read_queue
            )
        except _native.NativeError as error:
            raise from_native(error) from None
        self._refusal = _native.NativeError
        self._has_energy = chosen.has_energy
        self._reads: dict[int, tuple[int, Done | None]] = {}
        self._number = 0

    @property
    def clock(self) -> int:
        """The current clock; 0 at the creation."""
        return self._memory.clock()

    @property
    def clock_ns(self) -> float:
        """Length of a clock in ns; 1 ns for a device without command timings."""
        return self._memory.clock_ps() / 1000

    def accepts(self, address: int, *, write: bool = False) -> bool:
        """Whether ``enqueue`` would accept this request now."""
        return self._memory.accepts(address, write)

    def enqueue(self, address: int, *, write: bool = False, done: Done | None = None) -> bool:
        """Request the line of 64 bytes that contains an address.

        Returns False, without an effect, if the queue of its channel is full. A write is posted:
        it is complete when it is accepted, and ``done`` is not called.
        """
        if not self._memory.enqueue(self._number, address, write):
            return False
        if not write:
            self._reads[self._number] = (address, done)
            self._number += 1
        return True

    def tick(self, clocks: int = 1) -> int:
        """Advance by ``clocks`` and return the number of reads that completed.

        After the last clock, ``done`` of each of these reads is called, in order of time. Raises
        BadInputError if the simulated time would exceed 53 days.
        """
        try:
            completed = self._memory.tick(clocks)
        except self._refusal as error:
            raise from_native(error) from None
        for number, clock in completed:
            address, done = self._reads.pop(number)
            if done is not None:
                done(address, clock)
        return len(completed)

    def finish(self) -> MemoryActivity:
        """Drain all posted writes, end the simulation, and return the work of the memory."""
        work = self._memory.finish()
        spent = work["energy_J"] if self._has_energy else {}
        return MemoryActivity(
            clocks=self.clock,
            reads=work["reads"],
            writes=work["writes"],
            row_hits=work["row_hits"],
            activates=work["activates"],
            refreshes=work["refreshes"],
            energy_J={f"{cause}_J": joules for cause, joules in spent.items()},
        )
