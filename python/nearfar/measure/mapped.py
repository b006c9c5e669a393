"""File access by mmap against pread–pwrite and other system calls."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from nearfar._native import MappedBench, NativeError
from nearfar.errors import BadInputError, from_native
from nearfar.measure.session import Effort, Samples, Session
from nearfar.records.choices import TransferDirection, TransferMethod, TransferPattern, Warmth
from nearfar.records.figures import Origin, figure_fields
from nearfar.records.results import MappedPoint, MappedRatio, MappedResult, MappingFacts
from nearfar.records.run import NO_TIME, Skipped
from nearfar.stats import median, ratio_of_pairs
from nearfar.units import GIB, KIB

SEQUENTIAL_BLOCK = 128 * KIB
RANDOM_BLOCK = 4 * KIB
URING_DEPTH = 32
ACCESS_BUDGET_NS = 150_000_000


class Access(NamedTuple):
    """One way of reading or writing the file."""

    method: TransferMethod
    direction: TransferDirection
    pattern: TransferPattern
    warmth: Warmth

    @property
    def block_bytes(self) -> int:
        """Bytes moved by one call, or by one copy from the mapping."""
        return SEQUENTIAL_BLOCK if self.pattern == "sequential" else RANDOM_BLOCK

    def __str__(self) -> str:
        return " ".join(self)


def _all_accesses() -> list[Access]:
    """Every useful combination. O_DIRECT and io_uring bypass the page cache, so they are cold."""
    warmths: dict[TransferMethod, tuple[Warmth, ...]] = {
        "mapped": ("cold", "warm", "resident"),
        "buffered": ("cold", "warm"),
        "direct": ("cold",),
        "uring": ("cold",),
    }
    directions: tuple[TransferDirection, ...] = ("read", "write")
    patterns: tuple[TransferPattern, ...] = ("sequential", "random")
    return [
        Access(method, direction, pattern, warmth)
        for direction in directions
        for pattern in patterns
        for method in warmths
        for warmth in warmths[method]
    ]


@dataclass(frozen=True)
class MappedPlan:
    """All accesses on one file. Values: bytes/s; companions: page faults per GiB."""

    path: str
    size_bytes: int
    cpu: int
    accesses: tuple[Access, ...]

    @property
    def grid(self) -> Sequence[Access]:
        """The accesses, in the order of the report."""
        return self.accesses

    def epoch(self, seed: int) -> Samples[Access]:
        """Create a file, and measure each access once, in random order."""
        samples: Samples[Access] = Samples()
        bench = MappedBench(self.path, self.size_bytes, self.cpu)
        order = list(self.accesses)
        random.Random(seed).shuffle(order)
        for access in order:
            sample = bench.run(
                access.method,
                access.direction == "write",
                access.pattern == "random",
                access.warmth,
                access.block_bytes,
                seed,
                ACCESS_BUDGET_NS,
            )
            # A thread that waits for a device uses little CPU time on an idle machine, too.
            # Its usage is not evidence of a disturbance.
            waits = access.warmth == "cold" or access.direction == "write"
            samples.add(access, sample["bytes"] / sample["seconds"], [] if waits else [sample])
            faults = sample["minor_faults"] + sample["major_faults"]
            samples.companions.setdefault(access, []).append(faults * GIB / sample["bytes"])
        return samples

    def smaller(self) -> MappedPlan | None:
        """First drop io_uring, then cold writes other than by O_DIRECT."""
        without_uring = tuple(a for a in self.accesses if a.method != "uring")
        if without_uring != self.accesses:
            return replace(self, accesses=without_uring)
        kept = tuple(
            a
            for a in self.accesses
            if a.direction == "read" or a.warmth != "cold" or a.method == "direct"
        )
        return replace(self, accesses=kept) if kept != self.accesses else None


@dataclass(frozen=True)
class Inspection:
    """Properties of the file and its mapping, and the accesses it does not support."""

    facts: MappingFacts
    accesses: tuple[Access, ...]
    skipped: list[Skipped]


def inspect(path: str, size_bytes: int, cpu: int) -> Inspection:
    """Create the file once, inspect its mapping, and find out which accesses work on it."""
    _refuse_device(path)
    bench = MappedBench(path, size_bytes, cpu)
    facts = MappingFacts(**bench.facts(), read_ahead_bytes=_read_ahead_bytes(Path(path)))
    usable: list[Access] = []
    skipped: dict[str, str] = {}
    for access in _all_accesses():
        if access.warmth == "cold":  # O_DIRECT and io_uring among them
            try:
                bench.run(access.method, False, False, "cold", RANDOM_BLOCK, 1, 1)
            except NativeError as error:
                skipped[f"{access.method} cold"] = from_native(error).what
                continue
        usable.append(access)
    left_out = [Skipped(section="mapped", what=what, why=why) for what, why in skipped.items()]
    return Inspection(facts, tuple(usable), left_out)


def _read_ahead_bytes(path: Path) -> int | None:
    """Read-ahead of the device of a path that need not exist; None in memory."""
    device = (path if path.exists() else path.absolute().parent).stat().st_dev
    info = Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")
    try:
        return int(info.read_text()) * KIB
    except OSError:
        return None


def _refuse_device(path: str) -> None:
    if Path(path).is_char_device():
        raise BadInputError(
            f"{path} is a device without files, so the classic calls cannot reach what it maps",
            f"nearfar probe --tier devdax:{path}, or give a --path in a file system",
        )


def measure(
    session: Session, plan: MappedPlan, effort: Effort, inspection: Inspection
) -> tuple[MappedResult, list[Skipped]]:
    """Measure all accesses of an inspected file. Returns the result and the skipped accesses."""
    samples, dropped = session.repeat(
        "mapped", "bytes_per_s", plan, effort, judge_spread=False, kernel_works=True
    )
    figures = _Figures(session, samples)
    skipped = [*inspection.skipped, *_no_time(dropped)]
    result = MappedResult(
        path=plan.path,
        size_bytes=plan.size_bytes,
        file_system=file_system(Path(plan.path)),
        mapping=inspection.facts,
        points=[figures.point(access) for access in plan.accesses if access in samples.series],
        ratios=figures.ratios(),
        **figures.fault_time(),
    )
    return result, skipped


def _no_time(accesses: Sequence[Access]) -> list[Skipped]:
    return [Skipped(section="mapped", what=str(access), why=NO_TIME) for access in accesses]


@dataclass(frozen=True)
class _Figures:
    session: Session
    samples: Samples[Access]

    def point(self, access: Access) -> MappedPoint:
        estimates = {
            "bandwidth_bytes_per_s": median(self.samples.of(access)),
            "faults_per_gib": median(self.samples.companions[access]),
        }
        return MappedPoint(
            **access._asdict(),
            block_bytes=access.block_bytes,
            queue_depth=URING_DEPTH if access.method == "uring" else 1,
            **figure_fields(
                Origin.MEASURED, estimates, seed=self.session.seed, machine=self.session.machine_id
            ),
        )

    def ratios(self) -> list[MappedRatio]:
        found = []
        for access in self.samples.series:
            if access.method == "mapped" or access.warmth == "resident":
                continue
            mapped = self.samples.series.get(access._replace(method="mapped"))
            if mapped is None:
                continue
            ratio = ratio_of_pairs(mapped, self.samples.series[access])
            found.append(
                MappedRatio(
                    against=access.method,
                    direction=access.direction,
                    pattern=access.pattern,
                    warmth=access.warmth,
                    **figure_fields(
                        Origin.MEASURED,
                        {"ratio": ratio},
                        machine=self.session.machine_id,
                        note="mapped over classic, from the same epoch",
                    ),
                )
            )
        return found

    def fault_time(self) -> dict[str, Any]:
        """Time of a fault, from the difference between a fresh and a resident mapping."""
        fresh = Access("mapped", "read", "random", "warm")
        resident = fresh._replace(warmth="resident")
        if fresh not in self.samples.series or resident not in self.samples.series:
            return {}
        times = [
            (GIB / slow - GIB / fast) / faults * 1e9
            for slow, fast, faults in zip(
                self.samples.series[fresh],
                self.samples.series[resident],
                self.samples.companions[fresh],
                strict=True,
            )
            if faults > 0
        ]
        if not times or median(times).value <= 0:  # other programs took more than the faults
            return {}
        return figure_fields(
            Origin.MEASURED,
            {"fault_time_ns": median(times)},
            machine=self.session.machine_id,
            note="warm random mapped read: fresh against resident page tables",
        )


def file_system(path: Path) -> str:
    """Type of the file system that contains a path. The path need not exist."""
    where = path.absolute()
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    best: tuple[int, str] = (-1, "unknown")
    for line in mounts:
        left, _, right = line.partition(" - ")
        point = left.split()[4]
        if where.is_relative_to(point) and len(point) >= best[0]:
            best = (len(point), right.split()[0])
    return best[1]
