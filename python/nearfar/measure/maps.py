"""Insertions, look-ups and removals in hash maps, as pmembench's map_insert, map_get, map_remove.

Each epoch creates new pools: one for the loop that is timed as a whole, and one for operations that
are timed one by one. Look-ups use one pool for both. Then pairs of clwb and sfence are timed as a
reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nearfar import _native
from nearfar._native import PersistenceProbe, persist_instructions
from nearfar.errors import BadInputError, MachineError
from nearfar.measure import pool_tiers
from nearfar.measure.counters import Events
from nearfar.measure.session import Effort, Samples, Session
from nearfar.records.counters import RegionCounters
from nearfar.records.figures import Origin, figure_fields
from nearfar.records.persistent_structures import MapPoint, MapResult, PmdkCost
from nearfar.records.run import NO_TIME, Skipped
from nearfar.stats import Estimate, median, ratio_of_pairs
from nearfar.units import MIB

if TYPE_CHECKING:
    from nearfar._native import MapBench, MapRun
    from nearfar.records.choices import MapOperation, MapType

#: Percentiles of single operations: fraction, and the key of its record.
PERCENTILES = {
    0.5: "p50_latency_ns",
    0.9: "p90_latency_ns",
    0.99: "p99_latency_ns",
    0.999: "p999_latency_ns",
    0.9999: "p9999_latency_ns",
}
PRIMITIVES = (
    "persist",
    "tx_1_range",
    "tx_8_ranges",
    "tx_alloc",
    "publish_1_word",
    "alloc_publish",
    "alloc_free",
)
PRIMITIVE_COUNT = 20_000
#: The map on libpmemobj that --compare pmdk measures alternately.
PMDK_MAP: MapType = "map_rp"
REFERENCE_BYTES = 64 * MIB
REFERENCE_NS = 20_000_000
DEFAULT_FILE = "nearfar-map.pool"


class Key(NamedTuple):
    """One figure of one point of the sweep. ``of`` names the primitive of a primitive's figure."""

    operations: int
    value_bytes: int
    figure: str
    of: str = ""


class Point(NamedTuple):
    """A size of the map and of its values."""

    operations: int
    value_bytes: int

    def __str__(self) -> str:
        return f"{self.operations} operations on {self.value_bytes}-byte values"


@dataclass(frozen=True)
class MapPlan:
    """One operation on one map, at several sizes. Values: ns, or a count per operation."""

    type: MapType
    operation: MapOperation
    points: tuple[Point, ...]
    tier: str
    cpus: tuple[int, ...]
    seed: int = 1
    alloc: bool = False
    compare: bool = False
    events: Events | None = None

    @property
    def grid(self) -> Sequence[Key]:
        """All figures of all points."""
        return [Key(*point, figure, of) for point in self.points for figure, of in self._figures]

    @property
    def counted(self) -> tuple[str, ...]:
        """Fields of the record that this machine's events provide."""
        return tuple(self.events.fields.values()) if self.events else ()

    @property
    def persistent(self) -> bool:
        """Whether the map is in a pool. On dram, a PMDK-style map is its volatile counterpart."""
        return not pool_tiers.is_volatile(self.type, self.tier)

    @property
    def place(self) -> str:
        """The tier of each epoch's pools."""
        return pool_tiers.place(self.tier) if self.persistent else self.tier

    @property
    def _figures(self) -> list[tuple[str, str]]:
        figures = [
            "whole",
            "mean",
            "least",
            *PERCENTILES.values(),
            "largest",
            "cpu",
            "fences",
            "lines",
        ]
        if self.operation == "get":
            figures.append("dependent")
        if self.has_batches:
            figures.append("batched")
        if self.operation != "insert":
            figures.append("load")
        if self.has_reference:
            figures.append("reference")
        figures += self.counted
        compared = (*PRIMITIVES, PMDK_MAP) if self.compare else ()
        return [(f, "") for f in figures] + [
            (f, name) for name in compared for f in ("whole", "fences", "lines")
        ]

    @property
    def has_batches(self) -> bool:
        """Whether the map can look up many keys at once, which nearfar's map can."""
        return self.operation == "get" and self.type in ("map", "dram")

    @property
    def has_reference(self) -> bool:
        """Whether a reference pair of clwb and sfence is timed."""
        by = _native.parse_tier(self.tier)["persists"]
        return self.persistent and by != "msync" and "clwb" in persist_instructions()

    @property
    def tier_of_memory(self) -> str:
        """The tier without the name of a file, for probes that map memory of it."""
        return self.place.removesuffix(",populate")

    def bench(self, point: Point, kind: MapType | None = None) -> MapBench:
        """A fresh map, filled if the operation requires it."""
        return _native.MapBench(
            kind or self.type,
            self.operation,
            *point,
            self.alloc,
            self.place,
            list(self.cpus),
            self.seed,
        )

    def epoch(self, seed: int) -> Samples[Key]:
        """Each point once, on fresh pools."""
        samples: Samples[Key] = Samples()
        for point in self.points:
            _Epoch(self, point, samples).run()
        return samples

    def smaller(self) -> MapPlan | None:
        """Without the largest map."""
        if len(self.points) == 1:
            return None
        largest = max(self.points)
        return replace(self, points=tuple(p for p in self.points if p != largest))


@dataclass(frozen=True)
class _Epoch:
    plan: MapPlan
    point: Point
    samples: Samples[Key]

    def run(self) -> None:
        """The map's passes, the reference, and the map to compare with."""
        bench = self.plan.bench(self.point)
        if self.plan.operation != "insert":
            self._add("load", bench.load_seconds() * 1e9)
        whole = bench.run("whole")
        self._whole(whole)
        if self.plan.operation == "get":
            self._gets(bench)
        else:
            del bench  # closes its pool, before the next one is created
            bench = self.plan.bench(self.point)
        self._each(bench.run("each"))
        if self.plan.events and self.plan.counted:
            self._count(bench, self.plan.events)
        del bench
        if self.plan.has_reference:
            probe = PersistenceProbe(self.plan.tier_of_memory, REFERENCE_BYTES, self.plan.cpus[0])
            self._add("reference", probe.sample("clwb", 64, 1, REFERENCE_NS)["fence_ns"])
            del probe  # releases its part of a device
        if self.plan.compare:
            self._compare()

    def _gets(self, bench: MapBench) -> None:
        """Passes that only look-ups have."""
        for figure in ("dependent", *(("batched",) if self.plan.has_batches else ())):
            thread_s = bench.run(figure)["seconds"] * len(self.plan.cpus)
            self._add(figure, thread_s * 1e9 / self.point.operations)

    def _count(self, bench: MapBench, events: Events) -> None:
        """Run again and count events; insertions and removals use another new map."""
        if self.plan.operation != "get":
            bench = self.plan.bench(self.point)
        groups = [list(group) for group in events.groups]
        values, _ = events.read(bench.run_counted(groups, len(self.plan.cpus))["counted"])
        for field, value in values.items():
            self._add(field, value)

    def _add(self, figure: str, value: float, of: str = "") -> None:
        self.samples.add(Key(*self.point, figure, of), value, [])

    def _whole(self, run: MapRun, of: str = "") -> None:
        operations = self.point.operations
        self.samples.usages.extend(run["members"])
        self._add("whole", run["seconds"] * 1e9 / operations, of)
        self._add("fences", run["fences"] / operations, of)
        self._add("lines", run["lines"] / operations, of)

    def _each(self, run: MapRun) -> None:
        self._add("mean", run["mean_ns"])
        self._add("least", run["min_ns"])
        for share, figure in PERCENTILES.items():
            self._add(figure, run["percentiles_ns"][share])
        self._add("largest", run["largest_ns"])
        self._add("cpu", run["worst_cpu_ns"])

    def _compare(self) -> None:
        primitives = _native.PrimitiveBench(self.plan.place, self.plan.cpus[0])
        for name in PRIMITIVES:
            run = primitives.run(name, PRIMITIVE_COUNT)
            self.samples.usages.extend(run["members"])
            self._add("whole", run["seconds"] * 1e9 / PRIMITIVE_COUNT, name)
            self._add("fences", run["fences"] / PRIMITIVE_COUNT, name)
            self._add("lines", run["lines"] / PRIMITIVE_COUNT, name)
        del primitives
        self._whole(self.plan.bench(self.point, PMDK_MAP).run("whole"), PMDK_MAP)


def check(plan: MapPlan) -> None:
    """Reject invalid plans before anything runs, with a map of one entry for each value size."""
    pool_tiers.require_pools()
    if plan.compare and not plan.persistent:
        raise BadInputError(
            "--compare pmdk compares pools, and a counterpart in DRAM has none",
            "choose another map or tier",
        )
    for value_bytes in {point.value_bytes for point in plan.points}:
        replace(plan, cpus=plan.cpus[:1]).bench(Point(1, value_bytes))


def measure(session: Session, plan: MapPlan, effort: Effort) -> tuple[MapResult, list[Skipped]]:
    """Run the plan. The result is that of the last size; its ``sweep`` has all sizes."""
    samples, _ = session.repeat(
        "map", "ns", plan, effort, judge_spread=False, label=lambda key: " ".join(map(str, key))
    )
    done = [p for p in plan.points if Key(*p, "whole") in samples.series]
    figures = _Figures(session, plan, samples)
    sweep = [figures.point(point) for point in done]
    result = MapResult(
        **sweep[-1].model_dump(),
        type=plan.type,
        operation=plan.operation,
        tier=plan.tier,
        cpus=list(plan.cpus),
        oversubscribed=len(set(plan.cpus)) < len(plan.cpus),
        alloc=plan.alloc,
        sweep=sweep,
        pmdk=figures.costs(done[-1]) if plan.compare else [],
    )
    dropped = [str(p) for p in plan.points if p not in done]
    return result, [Skipped(section="map", what=what, why=NO_TIME) for what in dropped]


@dataclass(frozen=True)
class _Figures:
    session: Session
    plan: MapPlan
    samples: Samples[Key]

    def _of(self, point: Point, figure: str, of: str = "") -> list[float]:
        return self.samples.of(Key(*point, figure, of))

    def point(self, point: Point) -> MapPoint:
        times = self._of(point, "whole")
        threads = len(self.plan.cpus)
        estimates: dict[str, Estimate] = {
            "ops_per_s": median([1e9 / ns for ns in times]),
            "latency_ns": median([ns * threads for ns in times]),
            "time_s": median([ns * point.operations * 1e-9 for ns in times]),
            "mean_latency_ns": median(self._of(point, "mean")),
            "least_latency_ns": median(self._of(point, "least")),
            "largest_latency_ns": median(self._of(point, "largest")),
            "worst_cpu_ns": median(self._of(point, "cpu")),
            "fences_per_op": median(self._of(point, "fences")),
            "lines_per_op": median(self._of(point, "lines")),
            **{figure: median(self._of(point, figure)) for figure in PERCENTILES.values()},
        }
        optional = {
            "dependent": "dependent_latency_ns",
            "batched": "batched_latency_ns",
            "reference": "flush_fence_ns",
        }
        for figure, key in optional.items():
            if Key(*point, figure) in self.samples.series:
                estimates[key] = median(self._of(point, figure))
        if Key(*point, "load") in self.samples.series:
            estimates["load_time_s"] = median([ns * 1e-9 for ns in self._of(point, "load")])
        return MapPoint(
            **point._asdict(), counters=self._counters(point), **self._shaped(estimates)
        )

    def _counters(self, point: Point) -> RegionCounters | None:
        """Medians over the epochs. Software events have the origin *measured* on every tier."""
        events = self.plan.events
        if events is None:
            return None
        estimates = {
            field: median(self._of(point, field))
            for field in self.plan.counted
            if Key(*point, field) in self.samples.series
        }
        return RegionCounters(
            source="perf",
            missing=dict(events.missing),
            **figure_fields(
                Origin.MEASURED, estimates, seed=self.session.seed, machine=self.session.machine_id
            ),
        )

    def costs(self, point: Point) -> list[PmdkCost]:
        ours = self._of(point, "whole")
        return [
            PmdkCost(
                name=name,
                **self._shaped(
                    {
                        "latency_ns": median(self._of(point, "whole", name)),
                        "fences_per_op": median(self._of(point, "fences", name)),
                        "lines_per_op": median(self._of(point, "lines", name)),
                        "ratio": ratio_of_pairs(self._of(point, "whole", name), ours),
                    }
                ),
            )
            for name in (*PRIMITIVES, PMDK_MAP)
        ]

    def _shaped(self, estimates: dict[str, Estimate]) -> dict[str, Any]:
        return self.session.figures(self.plan.tier, persistent=self.plan.persistent, **estimates)


def keep(plan: MapPlan) -> str:
    """Run the largest point again, untimed, in a pool that is kept. Returns its file."""
    file = pool_tiers.kept_file(plan.tier, DEFAULT_FILE)
    kind = _native.parse_tier(plan.tier)["kind"]
    point = plan.points[-1]
    try:
        _native.MapBench(
            plan.type,
            plan.operation,
            *point,
            plan.alloc,
            f"{kind}:{file}",
            list(plan.cpus),
            plan.seed,
        ).run("whole")
    except _native.NativeError:
        file.unlink(missing_ok=True)
        raise
    if not file.exists():
        raise MachineError(f"{file} is not there", "report this with the command you ran")
    return str(file)
