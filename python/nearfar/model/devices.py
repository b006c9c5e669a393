"""A device's figures as what a structure in it pays: a load, a fence, a line more, an msync.

Equation: load = read latency. fence = the latency of 64 B made durable (store, flush, fence),
at the high end no less than the host's own takes: another host's may be quicker, not its memory.
line = bytes of the device's access unit over its write bandwidth: a scattered line costs the
medium a whole unit; where the bandwidth is not known, nothing to a whole fence. stream, a line of
those that prefetchers bring in turn = the near one times the ratio of the load latencies, for as
many lines are under way, at least 64 B over the read bandwidth. A device that
takes over 2 µs to read is a disk: its pages are cached in near memory, and what is flushed waits
for a block to be written (msync).
Source: the profile; ± 10 % where it states no range. The fence of memory whose profile has none is
that of the host's own memory, raised by what its loads take longer, at most.
Limits: idle latencies; nothing queues. A disk's own cache may answer sooner: sequential latency is
the low end.
"""

from __future__ import annotations

from nearfar.model.host_costs import HostCosts
from nearfar.model.map_work import NOTHING, PROFILE_MARGIN, Constant, constant, difference
from nearfar.model.structures import Memory
from nearfar.records.profile import Host, Profile

#: A load that takes longer is none: the device moves blocks.
_SLOWEST_LOAD_NS = 2000.0
_LINE = 64.0
#: Of fences of memory that nobody measured on a host: 64 B stored, flushed and fenced on DDR4.
_DRAM_FENCE = Constant(87e-9, 57e-9, 170e-9)
#: Lines that prefetchers have under way on a host where nobody measured a stream, and their range.
_UNDER_WAY = (16, 8, 32)


def is_disk(far: Profile) -> bool:
    """Whether it moves blocks."""
    return far.scalar("read_latency_ns") > _SLOWEST_LOAD_NS


def near_memory(host: Host, costs: HostCosts) -> Memory:
    """The host's own memory, standing in for persistent memory."""
    fence = _DRAM_FENCE
    for key in ("near_flush_latency_ns", "near_write_latency_ns"):
        if key in host.figures:
            fence = constant(host, key, 1e-9)
            break
    line = Constant(fence.value / 4, 0.0, fence.high / 2)
    if "near_flushed_line_ns" in host.figures:
        line = difference(host, "near_flushed_line_ns", 1e-9)
    return Memory(
        f"memory of {host.name}", costs.memory, fence, line, stream=_near_stream(host, costs)
    )


def _near_stream(host: Host, costs: HostCosts) -> Constant:
    if "near_stream_line_ns" in host.figures:
        return constant(host, "near_stream_line_ns", 1e-9)
    likely, few, many = _UNDER_WAY
    load = costs.memory
    return Constant(load.value / likely, load.low / many, load.high / few)


def far_memory(far: Profile, near: Memory) -> Memory:
    """A device. Raises BadInputError where it has no read latency."""
    load = constant(far, "read_latency_ns", 1e-9, PROFILE_MARGIN)
    if is_disk(far):
        return Memory(far.name, near.load, NOTHING, NOTHING, _sync(far), near.stream)
    return Memory(
        far.name, load, _fence(far, load, near), _line(far, near),
        stream=_stream(far, load, near),
    )  # fmt: skip


def _stream(far: Profile, load: Constant, near: Memory) -> Constant:
    least = 0.0
    if "read_bandwidth_bytes_per_s" in far.figures:
        least = _LINE / constant(far, "read_bandwidth_bytes_per_s", 1.0, PROFILE_MARGIN).high
    value, low, high = (
        max(stream * longer / near.load.value, least)
        for stream, longer in (
            (near.stream.value, load.value), (near.stream.low, load.low),
            (near.stream.high, load.high),
        )
    )  # fmt: skip
    return Constant(value, low, high)


def _fence(far: Profile, load: Constant, near: Memory) -> Constant:
    if "write_latency_ns" in far.figures:
        told = constant(far, "write_latency_ns", 1e-9, PROFILE_MARGIN)
        return Constant(told.value, told.low, max(told.high, near.fence.value))
    more = max(load.value - near.load.value, 0.0)
    return Constant(
        near.fence.value + more / 2, near.fence.low,
        near.fence.high + max(load.high - near.load.low, 0.0),
    )  # fmt: skip


def _line(far: Profile, near: Memory) -> Constant:
    unit = far.figures["access_unit_bytes"].value if "access_unit_bytes" in far.figures else _LINE
    if "write_bandwidth_bytes_per_s" in far.figures:
        bandwidth = constant(far, "write_bandwidth_bytes_per_s", 1.0, PROFILE_MARGIN)
        unit = unit or _LINE
        return Constant(unit / bandwidth.value, _LINE / bandwidth.high, unit / bandwidth.low)
    fence = (
        constant(far, "write_latency_ns", 1e-9, PROFILE_MARGIN)
        if ("write_latency_ns" in far.figures)
        else near.fence
    )
    return Constant(fence.value / 4, 0.0, fence.high)


def _sync(far: Profile) -> Constant:
    """A block written at random; sequential at the low end, as from a cache of the drive."""
    key = "write_latency_ns" if "write_latency_ns" in far.figures else "read_latency_ns"
    sync = constant(far, key, 1e-9, PROFILE_MARGIN)
    least = sync.low
    if "sequential_write_latency_ns" in far.figures:
        least = min(least, far.scalar("sequential_write_latency_ns") * 1e-9)
    return Constant(sync.value, least, sync.high)
