"""Costs of a structure on a device: a load, a fence, one more line, an msync.

Equation: with L the read latency,
  load    L_far
  fence   time in which the host makes 64 B durable in its own memory (store, flush, fence);
          high end: plus L_far - L_near
  line    max(line of the host's memory, access unit / write bandwidth)
  stream  max(stream of the host's memory · L_far / L_near, 64 B / read bandwidth)
The fence is the same for all devices: it waits for the memory controller, which took 87 ns for DRAM
and 90 ns for Optane on one machine (Yang et al., FAST 2020). Times of other hosts are not used.
Only a device that nearfar measured has a fence of its own, if nearfar measured the host's fence,
too. A scattered line costs the medium a whole access unit; without a write bandwidth, the range of
line ends at a whole fence. A stream is lines that prefetchers read in order; as many of them are
outstanding as on the host's memory.
A device with a read latency above 2 µs is a disk: its pages are cached in near memory, and a flush
waits until a block is written (msync).
Source: the profile; ± 10 % if it has no range.
Limits: idle latencies; nothing queues. A fence on a CXL device may wait for the device's response:
the high end. A disk's own cache may respond sooner: the sequential latency is the low end.
"""

from __future__ import annotations

from nearfar.model.host_costs import HostCosts
from nearfar.model.map_work import NOTHING, PROFILE_MARGIN, Constant, constant, difference
from nearfar.model.pointer_structures import Memory
from nearfar.records.profile import Host, Profile
from nearfar.units import LINE_BYTES

#: A device with a higher read latency transfers blocks.
_SLOWEST_LOAD_NS = 2000.0
#: Figures of a measured fence, the first one that a device has: flushes, non-temporal stores.
_FENCES = ("flush_latency_ns", "write_latency_ns")
#: Fence on a host without a measured one: 64 B stored, flushed and fenced on DDR4.
_DRAM_FENCE = Constant(87e-9, 57e-9, 170e-9)
#: Outstanding prefetches on a host without a measured stream, and their range.
_UNDER_WAY = (16, 8, 32)


def is_disk(far: Profile) -> bool:
    """Whether the device transfers blocks."""
    return far.scalar("read_latency_ns") > _SLOWEST_LOAD_NS


def near_memory(host: Host, costs: HostCosts) -> Memory:
    """The host's own memory, which emulates persistent memory."""
    fence = _DRAM_FENCE
    measured = False
    for key in ("near_flush_latency_ns", "near_write_latency_ns"):
        if key in host.figures:
            fence, measured = constant(host, key, 1e-9), host.figures[key].origin is not None
            break
    line = Constant(fence.value / 4, 0.0, fence.high / 2)
    if "near_flushed_line_ns" in host.figures:
        line = difference(host, "near_flushed_line_ns", 1e-9)
    return Memory(
        f"memory of {host.name}",
        costs.memory,
        fence,
        line,
        stream=_near_stream(host, costs),
        measured=measured,
    )


def _near_stream(host: Host, costs: HostCosts) -> Constant:
    if "near_stream_line_ns" in host.figures:
        return constant(host, "near_stream_line_ns", 1e-9)
    likely, few, many = _UNDER_WAY
    load = costs.memory
    return Constant(load.value / likely, load.low / many, load.high / few)


def far_memory(far: Profile, near: Memory) -> Memory:
    """A device's costs. Raises BadInputError if it has no read latency."""
    load = constant(far, "read_latency_ns", 1e-9, PROFILE_MARGIN)
    if is_disk(far):
        return Memory(far.name, near.load, NOTHING, NOTHING, _sync(far), near.stream)
    fence = _fence(far, load, near)
    return Memory(far.name, load, fence, _line(far, fence, near), stream=_stream(far, load, near))


def _stream(far: Profile, load: Constant, near: Memory) -> Constant:
    least = 0.0
    if "read_bandwidth_bytes_per_s" in far.figures:
        least = LINE_BYTES / constant(far, "read_bandwidth_bytes_per_s", 1.0, PROFILE_MARGIN).high
    value, low, high = (
        max(stream * longer / near.load.value, least)
        for stream, longer in (
            (near.stream.value, load.value),
            (near.stream.low, load.low),
            (near.stream.high, load.high),
        )
    )
    return Constant(value, low, high)


def _fence(far: Profile, load: Constant, near: Memory) -> Constant:
    own = next((key for key in _FENCES if _is_measured(far, key)), None)
    if own and near.measured:
        return constant(far, own, 1e-9, PROFILE_MARGIN)
    longer = max(load.high - near.load.low, 0.0)
    return Constant(near.fence.value, near.fence.low, near.fence.high + longer)


def _is_measured(far: Profile, key: str) -> bool:
    """Whether nearfar measured a figure, as it measures the host's."""
    return key in far.figures and far.figures[key].origin is not None


def _line(far: Profile, fence: Constant, near: Memory) -> Constant:
    own = near.line
    if "write_bandwidth_bytes_per_s" not in far.figures:
        return Constant(own.value, own.low, max(own.high, fence.high))
    unit = (
        far.figures["access_unit_bytes"].value if "access_unit_bytes" in far.figures else LINE_BYTES
    )
    unit = unit or LINE_BYTES
    bandwidth = constant(far, "write_bandwidth_bytes_per_s", 1.0, PROFILE_MARGIN)
    return Constant(
        max(own.value, unit / bandwidth.value),
        max(own.low, LINE_BYTES / bandwidth.high),
        max(own.high, unit / bandwidth.low),
    )


def _sync(far: Profile) -> Constant:
    """Time of a random block write; the low end is sequential, as from the drive's cache."""
    key = "write_latency_ns" if "write_latency_ns" in far.figures else "read_latency_ns"
    sync = constant(far, key, 1e-9, PROFILE_MARGIN)
    least = sync.low
    if "sequential_write_latency_ns" in far.figures:
        least = min(least, far.scalar("sequential_write_latency_ns") * 1e-9)
    return Constant(sync.value, least, sync.high)
