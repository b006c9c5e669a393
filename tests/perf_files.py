"""perf.data files with samples of hardware memory events, made from the documented formats.

Sources: ``tools/perf/Documentation/perf.data-file-format.txt`` and
``include/uapi/linux/perf_event.h`` of Linux; for IBS ``arch/x86/events/amd/ibs.c`` (what the raw
data are) and AMD's PPR for Family 19h (bits of the registers); for load latency Intel's SDM,
volume 3B, "Load Latency Performance Monitoring Facility". They prove that such files are parsed,
not that hardware writes them so.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

#: One of so many events is sampled.
SAMPLE_PERIOD = 1009

_ATTR_BYTES = 128
_HEADER_BYTES = 104

# enum perf_event_sample_format
IP, TID, TIME, ADDR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
RAW = 1 << 10
WEIGHT, DATA_SRC, IDENTIFIER, PHYS_ADDR = 1 << 14, 1 << 15, 1 << 16, 1 << 19

_USER_EXACT = 2 | 1 << 14


@dataclass
class Event:
    """An event of a file; its id is its place in the file, from 1."""

    name: str
    type: int
    config: int
    fields: int
    config1: int = 0
    precise: int = 0

    def attr(self) -> bytes:
        """``struct perf_event_attr`` with sample_id_all."""
        flags = 1 << 18 | self.precise << 15
        what = struct.pack("<IIQ", self.type, _ATTR_BYTES, self.config)
        head = what + struct.pack("<QQQQ", SAMPLE_PERIOD, self.fields, 0, flags)
        return (head + struct.pack("<IIQ", 0, 0, self.config1)).ljust(_ATTR_BYTES, b"\0")


@dataclass
class File:
    """Contents of a file: events, records, types of PMUs."""

    cpu: str
    pmus: dict[int, str]
    events: list[Event]
    records: list[bytes] = field(default_factory=list)

    def sample(self, event: int, *parts: bytes) -> None:
        """Adds a sample of an event: all fields after IDENTIFIER."""
        self.records.append(_record(9, _USER_EXACT, struct.pack("<Q", event + 1) + b"".join(parts)))

    def write(self, path: Path) -> Path:
        """Writes header, ids, attributes, records and features."""
        ids = b"".join(struct.pack("<Q", i + 1) for i in range(len(self.events)))
        attrs_at = _HEADER_BYTES + len(ids)
        attrs = b"".join(
            event.attr() + struct.pack("<QQ", _HEADER_BYTES + 8 * i, 8)
            for i, event in enumerate(self.events)
        )
        data = b"".join(self.records)
        data_at = attrs_at + len(attrs)
        features = {8: _text(self.cpu), 12: self._names(), 16: self._pmus()}
        bits = sum(1 << bit for bit in features)
        head = struct.pack("<8sQQ", b"PERFILE2", _HEADER_BYTES, _ATTR_BYTES + 16)
        head += struct.pack("<QQQQQQ", attrs_at, len(attrs), data_at, len(data), 0, 0)
        head += struct.pack("<QQQQ", bits, 0, 0, 0)
        sections, contents = b"", b""
        first = data_at + len(data) + 16 * len(features)
        for content in features.values():
            sections += struct.pack("<QQ", first + len(contents), len(content))
            contents += content
        path.write_bytes(head + ids + attrs + data + sections + contents)
        return path

    def _names(self) -> bytes:
        named = struct.pack("<II", len(self.events), _ATTR_BYTES)
        for i, event in enumerate(self.events):
            named += event.attr() + struct.pack("<I", 1) + _text(event.name)
            named += struct.pack("<Q", i + 1)
        return named

    def _pmus(self) -> bytes:
        pairs = (struct.pack("<I", number) + _text(name) for number, name in self.pmus.items())
        return struct.pack("<I", len(self.pmus)) + b"".join(pairs)


def _record(kind: int, misc: int, body: bytes) -> bytes:
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def _text(text: str) -> bytes:
    padded = text.encode() + b"\0" * (8 - len(text) % 8)
    return struct.pack("<I", len(padded)) + padded


def _place(ip: int, time_ns: int) -> bytes:
    """IP, TID (process 7, thread 8) and TIME."""
    return struct.pack("<QIIQ", ip, 7, 8, time_ns)


def data_src(op: int, level_bits: int, level: int, *, remote: bool = False, tlb: int = 0x1A) -> int:
    """``union perf_mem_data_src``; the TLB hits its L1 or L2 if not given."""
    snoop_none, not_locked = 0x02, 0
    return (
        op
        | level_bits << 5
        | snoop_none << 19
        | not_locked << 24
        | tlb << 26
        | level << 33
        | remote << 37
    )


#: op, bits of levels, level number: what arch/x86/events/intel/ds.c has for load latency.
LOAD_L3 = data_src(0x02, 0x40 | 0x02, 3)
LOAD_LOCAL_RAM = data_src(0x02, 0x80 | 0x02, 13, tlb=0x14)
LOAD_REMOTE_RAM = data_src(0x02, 0x100 | 0x02, 13, remote=True)
LOAD_PMEM = data_src(0x02, 0, 14)


def pebs(path: Path, rounds: int = 1) -> Path:
    """``perf mem record`` on an Intel server: four loads a round, of which one has no address.
    Rounds are 100 us apart."""
    fields = IDENTIFIER | IP | TID | TIME | ADDR | WEIGHT | DATA_SRC | PHYS_ADDR
    event = Event("cpu/mem-loads,ldlat=30/P", 4, 0x1CD, fields, config1=30, precise=2)
    file = File("Synthetic Xeon", {1: "software", 4: "cpu"}, [event])
    loads = [
        (0x7F0000001000, 70, LOAD_L3),
        (0x7F0000002040, 350, LOAD_LOCAL_RAM),
        (0x7F0000003080, 520, LOAD_REMOTE_RAM),
        (0, 900, LOAD_PMEM),
    ]
    for number in range(rounds * len(loads)):
        in_round = number % len(loads)
        address, weight, source = loads[in_round]
        place = _place(0x401000 + in_round, 1000 + number // len(loads) * 100_000 + in_round)
        file.sample(0, place, struct.pack("<QQQQ", address, weight, source, 0x5000))
    return file.write(path)


_ZEN4 = 1 << 11


def ibs_registers(data2: int, data3: int, address: int) -> bytes:
    """SAMPLE_RAW of an op: length, capabilities, then MSRs C001_1033 to C001_1039."""
    control = 1 << 18 | 1 << 17  # valid, enabled
    registers = struct.pack("<IQQQQQQQ", _ZEN4, control, 0x401000, 0, data2, data3, address, 0)
    return struct.pack("<I", len(registers)) + registers


def ibs_raw(path: Path) -> Path:
    """``perf record -e ibs_op// -R`` before Linux 6.2: only registers are recorded."""
    load, store, l1_miss, l2_miss, address_valid = 1, 1 << 1, 1 << 7, 1 << 20, 1 << 17
    event = Event("ibs_op/cnt_ctl=1/", 11, 1 << 19, IDENTIFIER | IP | TID | TIME | RAW)
    file = File("Synthetic EPYC", {1: "software", 11: "ibs_op"}, [event])
    missed = load | l1_miss | l2_miss | address_valid
    for i, (data2, data3, address) in enumerate(
        [
            (3, missed | 400 << 32, 0x7F0000001000),  # DRAM
            (3 | 1 << 4, missed | 700 << 32, 0x7F0000002000),  # DRAM of another node
            (1 << 6, missed | 900 << 32, 0x7F0000003000),  # extension memory
            (0, load | address_valid, 0x7F0000004000),  # hit in L1
            (0, store | l1_miss | l2_miss | address_valid, 0x7F0000005000),
            (0, 0, 0),  # no access
        ]
    ):
        file.sample(0, _place(0x402000 + i, 2000 + i), ibs_registers(data2, data3, address))
    return file.write(path)


def ibs_decoded(path: Path) -> Path:
    """The same since Linux 6.2: the kernel fills in address, weight and data source."""
    fields = IDENTIFIER | IP | TID | TIME | ADDR | WEIGHT | DATA_SRC
    event = Event("ibs_op//", 11, 0, fields)
    file = File("Synthetic EPYC", {11: "ibs_op"}, [event])
    cxl = data_src(0x02, 0, 9)
    file.sample(0, _place(0x402000, 2000), struct.pack("<QQQ", 0x7F0000001000, 800, cxl))
    return file.write(path)
