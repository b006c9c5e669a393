from collections.abc import Callable, Sequence
from typing import Self, TypedDict

import numpy as np
from numpy.typing import NDArray

class NativeError(Exception): ...

class Usage(TypedDict):
    wall_ns: int
    cpu_ns: int
    minor_faults: int
    major_faults: int
    involuntary_switches: int

class Member(Usage):
    start_ns: int
    end_ns: int

class TierSpec(TypedDict):
    kind: str
    maps: str  # memory, file or device
    persists: str  # nothing, emulated, flush or msync
    holds_pools: bool
    node: int
    path: str
    pages: str
    populate: bool
    profile: str

class TopologyNode(TypedDict):
    id: int
    local_bytes: int
    subtype: str
    near_cpus: list[int]
    distances: list[int]
    read_latency_ns: float | None
    write_latency_ns: float | None
    read_bandwidth_bytes_per_s: float | None
    write_bandwidth_bytes_per_s: float | None

class TopologyCache(TypedDict):
    level: int
    type: str
    size_bytes: int
    line_bytes: int
    ways: int
    cpus: list[int]

class TopologyMemoryCache(TopologyCache):
    node: int

class TopologyCpu(TypedDict):
    id: int
    core: int
    package: int
    usable: bool

class Topology(TypedDict):
    processor: str
    kernel: str
    nodes: list[TopologyNode]
    caches: list[TopologyCache]
    memory_caches: list[TopologyMemoryCache]
    cpus: list[TopologyCpu]

class KernelFacts(TypedDict):
    name: str
    loaded_bytes: int
    stored_bytes: int
    allocates: bool
    skipped_by_probe: bool

class LatencySample(Usage):
    latency_ns: float
    steps: int

class TimedLoads(Usage):
    percentiles_ns: dict[float, float]
    largest_ns: float
    timer_ns: float

class LoadedSample(TypedDict):
    latency_ns: float
    traffic_bytes_per_s: float
    chaser_bytes_per_s: float
    members: list[Member]

class PersistSample(Usage):
    fence_ns: float
    fences: int

class OverwriteRun(Usage):
    percentiles_ns: dict[float, float]
    largest_ns: float
    stalls: int
    stall_ns: float
    writes_between: float

class TierLoad(TypedDict):
    read_share: float
    bandwidth_bytes_per_s: float
    latency_ns: float
    utilization: float

class Placement(TypedDict):
    near_steps: list[int]
    time_ns: float
    exact: bool
    near: TierLoad
    far: TierLoad

class ArrayRepeat(TypedDict):
    seconds: float
    counted_bytes: int
    members: list[Member]

class MappingFacts(TypedDict):
    descriptor: int
    first_address: int
    last_address: int
    page_bytes: int
    huge_bytes: int
    dax: bool
    map_sync: bool

class IoSample(Usage):
    seconds: float
    bytes: int

def vector_isa() -> str: ...
def available_memory_bytes() -> int: ...
def hypervisor() -> bytes | None: ...
def parse_tier(text: str) -> TierSpec: ...
def tier_capacity_bytes(tier: str) -> int: ...
def set_pace_source(source: Callable[[str], Sequence[float]]) -> None: ...
def topology(xml_path: str | None) -> Topology: ...
def topology_xml(xml_path: str | None) -> str: ...
def data_tlb() -> list[tuple[int, int]]: ...
def array_kernels() -> list[KernelFacts]: ...

class LatencyProbe:
    def __init__(self, tier: str, max_region_bytes: int, cpu: int) -> None: ...
    def touch_ns(self) -> int: ...
    def prepare(self, region_bytes: int, block_bytes: int, seed: int, warm_steps: int) -> None: ...
    def sample(self, nanoseconds: int) -> LatencySample: ...
    def sample_chains(self, chains: int, nanoseconds: int) -> LatencySample: ...
    def sample_spaced(self, spacing: str, instructions: int, nanoseconds: int) -> LatencySample: ...
    def time_each(self, steps: int) -> TimedLoads: ...

class ArrayBench:
    def __init__(
        self, tier_a: str, tier_b: str, tier_c: str, elements: int, cpus: list[int]
    ) -> None: ...
    def repeat(self, kernel: str, cpus: list[int]) -> ArrayRepeat: ...
    def worst_error(self) -> float: ...

class AccessProbe:
    def __init__(self, tier: str, size_bytes: int, cpus: list[int]) -> None: ...
    def run(
        self,
        order: str,
        block_bytes: int,
        stride_bytes: int,
        reads: int,
        writes: int,
        nontemporal: bool,
        cpus: list[int],
        nanoseconds: int,
        seed: int,
    ) -> ArrayRepeat: ...

class LoadedProbe:
    def __init__(
        self,
        tier: str,
        chase_bytes: int,
        traffic_bytes: int,
        chaser_cpu: int,
        traffic_cpus: list[int],
        seed: int,
    ) -> None: ...
    def run(
        self,
        order: str,
        reads: int,
        writes: int,
        offered_bytes_per_s: float,
        nanoseconds: int,
        seed: int,
    ) -> LoadedSample: ...

def persist_instructions() -> list[str]: ...

class PersistenceProbe:
    def __init__(self, tier: str, size_bytes: int, cpu: int) -> None: ...
    def sample(
        self, how: str, block_bytes: int, blocks_per_fence: int, nanoseconds: int
    ) -> PersistSample: ...
    def sample_msync(self, block_bytes: int, nanoseconds: int) -> PersistSample: ...
    def overwrite(self, how: str, block_bytes: int, writes: int) -> OverwriteRun: ...

class CacheCounters(TypedDict):
    loads: int
    load_misses: int
    stores: int
    store_misses: int
    fetches: int
    fetch_misses: int
    prefetches: int
    writebacks: int

class CacheHierarchy:
    def __init__(
        self,
        levels: list[tuple[int, int]],
        instructions: tuple[int, int] | None,
        line_bytes: int,
        policy: str,
        seed: int,
    ) -> None: ...
    def access(
        self, addresses: NDArray[np.uint64], sizes: NDArray[np.uint8], kinds: NDArray[np.uint8]
    ) -> None: ...
    def counters(self) -> list[CacheCounters]: ...

def layer_condition_factor(
    columns: int,
    element_bytes: int,
    cache_bytes: int,
    ways: int,
    policy: str,
    scattered: bool,
    seed: int,
) -> float: ...

class MapReplay(TypedDict):
    operations: int
    buckets: int
    walked: int
    heads: int
    moved: int
    flushed_lines: int
    fences: int
    missed: list[int]

def replay_map(
    operation: str,
    operations: int,
    value_bytes: int,
    result_bytes: int,
    cache: tuple[int, int],
    variants: list[tuple[str, bool]],
    seed: int,
) -> MapReplay: ...

class MapRun(TypedDict):
    seconds: float
    mean_ns: float
    min_ns: float
    largest_ns: float
    percentiles_ns: dict[float, float]
    worst_cpu_ns: float
    fences: int
    lines: int
    members: list[Member]

class MapBench:
    def __init__(
        self,
        kind: str,
        operation: str,
        operations: int,
        value_bytes: int,
        alloc: bool,
        tier: str,
        cpus: list[int],
        seed: int,
        writer_cpu: int | None = None,
    ) -> None: ...
    def load_seconds(self) -> float: ...
    def pool_bytes(self) -> int: ...
    def run(self, pass_: str) -> MapRun: ...
    def run_counted(self, groups: list[list[str]], threads: int) -> CountedMapRun: ...

class CountedMapRun(MapRun):
    counted: dict[str, tuple[float, float]]

def check_counters(names: list[str]) -> None: ...
def intset_structures() -> list[str]: ...

class IntsetRun(TypedDict):
    operations: int
    changed: int
    seconds: float
    fences: int
    lines: int
    members: list[Member]

class IntsetBench:
    def __init__(
        self,
        structure: str,
        medium: str,
        entries: int,
        update_percent: int,
        tier: str,
        cpu: int,
        seed: int,
    ) -> None: ...
    def run(self, budget_ns: int) -> IntsetRun: ...

class PrimitiveRun(TypedDict):
    seconds: float
    fences: int
    lines: int
    members: list[Member]

class PrimitiveBench:
    def __init__(self, tier: str, cpu: int) -> None: ...
    def run(self, primitive: str, count: int) -> PrimitiveRun: ...

class MappedBench:
    def __init__(self, path: str, size_bytes: int, cpu: int) -> None: ...
    def facts(self) -> MappingFacts: ...
    def run(
        self,
        method: str,
        write: bool,
        random: bool,
        warmth: str,
        block_bytes: int,
        seed: int,
        budget_ns: int,
    ) -> IoSample: ...

class PoolArrayBench:
    def __init__(self, tier: str, elements: int, cpus: list[int]) -> None: ...
    def repeat(self, kernel: str, cpus: list[int]) -> ArrayRepeat: ...
    def worst_error(self) -> float: ...

class CompeteThread(TypedDict):
    far: bool
    cpu: int
    start_ns: int
    wall_ns: list[int]
    cpu_ns: list[int]
    steal_ns: list[int]
    minor_faults: list[int]
    major_faults: list[int]
    involuntary_switches: list[int]

class CompeteRun(TypedDict):
    from_ns: int
    to_ns: int
    near_bytes_per_s: float
    far_bytes_per_s: float
    threads: list[CompeteThread]

class CompeteBench:
    def __init__(
        self,
        mode: str,
        near: str,
        far: str,
        elements: int,
        near_cpus: list[int],
        far_cpus: list[int],
    ) -> None: ...
    def run(self, iterations: int) -> CompeteRun: ...
    def iteration_bytes(self) -> int: ...
    def check(self) -> None: ...

class StencilRun(TypedDict):
    near_ns: list[int]
    far_ns: list[int]
    total_ns: list[int]
    members: list[Member]

class StencilBench:
    def __init__(
        self,
        rows: int,
        columns: int,
        far_rows: int,
        version: str,
        near: str,
        far: str,
        near_cpus: list[int],
        far_cpus: list[int],
        seed: int,
        width: int = 0,
    ) -> None: ...
    def run(self, sweeps: int) -> StencilRun: ...
    def run_serially(self, sweeps: int) -> None: ...
    def values(self) -> list[float]: ...
    def checksum(self) -> int: ...
    @staticmethod
    def first_value(seed: int, index: int) -> float: ...

class PipelineRun(TypedDict):
    generate_ns: int
    generate_idle_ns: int
    transfer_ns: int
    analyse_ns: int
    transfer_idle_ns: int
    total_ns: int
    laps: list[tuple[str, str, int, int]]
    findings: list[tuple[float, float, float, float, float, float]]
    members: list[Member]

class PipelineBench:
    def __init__(
        self,
        elements: int,
        near: str,
        far: str,
        near_cpus: list[int],
        far_cpus: list[int],
        seed: int,
    ) -> None: ...
    def run(self, iterations: int) -> PipelineRun: ...
    def stop(self) -> None: ...

class _Structure:
    @classmethod
    def create(cls, place: str, pool_bytes: int) -> Self: ...
    @classmethod
    def open(cls, place: str) -> Self: ...
    def close(self) -> None: ...
    def size(self) -> int: ...
    def verify(self) -> None: ...

class _WordMapOfPmdk(_Structure):
    def insert(self, key: int, value: int, /) -> bool: ...
    def remove(self, key: int, /) -> int | None: ...
    def get(self, key: int, /) -> int | None: ...
    def items(self) -> list[tuple[int, int]]: ...

class WordMapAtomic(_WordMapOfPmdk): ...
class WordMapTx(_WordMapOfPmdk): ...
class WordMapRp(_WordMapOfPmdk): ...

class _Clearable(_Structure):
    def clear(self) -> None: ...

class WordMap(_Clearable):
    def insert(self, key: int, value: int, /) -> bool: ...
    def put(self, key: int, value: int, /) -> bool: ...
    def remove(self, key: int, /) -> bool: ...
    def get(self, key: int, /) -> int | None: ...
    def get_many(self, keys: list[int], /) -> list[int | None]: ...
    def bulk_load(self, pairs: list[tuple[int, int]], /) -> None: ...
    def items(self) -> list[tuple[int, int]]: ...

class BytesMap(_Clearable):
    def insert(self, key: bytes, value: bytes, /) -> bool: ...
    def put(self, key: bytes, value: bytes, /) -> bool: ...
    def remove(self, key: bytes, /) -> bool: ...
    def get(self, key: bytes, /) -> bytes | None: ...
    def get_many(self, keys: list[bytes], /) -> list[bytes | None]: ...
    def bulk_load(self, pairs: list[tuple[bytes, bytes]], /) -> None: ...
    def items(self) -> list[tuple[bytes, bytes]]: ...

class WordList(_Clearable):
    def insert(self, key: int, /) -> bool: ...
    def remove(self, key: int, /) -> bool: ...
    def contains(self, key: int, /) -> bool: ...
    def bulk_load(self, keys: list[int], /) -> None: ...
    def values(self) -> list[int]: ...

class WordSkipList(WordList): ...

class WordQueue(_Clearable):
    def push(self, value: int, /) -> None: ...
    def pop(self) -> int | None: ...
    def front(self) -> int | None: ...
    def bulk_load(self, values: list[int], /) -> None: ...
    def values(self) -> list[int]: ...

class PoolFinding(TypedDict):
    severity: str
    part: str
    offset: int
    what: str

class PoolHeader(TypedDict):
    major: int
    features_compat: int
    features_incompat: int
    features_ro_compat: int
    set_uuid: str
    uuid: str
    pool_id: int
    created_s: int
    open_when_last_used: bool

class PoolDescriptor(TypedDict):
    layout: str
    lanes_offset: int
    lanes: int
    heap_offset: int
    heap_bytes: int
    root_offset: int
    root_bytes: int
    run_id: int

class PoolLogs(TypedDict):
    used: int
    pending: int
    entries: int
    extensions: int

class PoolHeap(TypedDict):
    zones: int
    zones_in_use: int
    chunks: int
    free_chunks: int
    run_chunks: int
    large_chunks: int

class PoolCount(TypedDict):
    objects: int
    block_bytes: int
    smallest_bytes: int
    largest_bytes: int

class PoolTypeCount(PoolCount):
    type: int

class PoolRuns(TypedDict):
    block_bytes: int
    runs: int
    chunks: int
    blocks: int
    used_blocks: int

class PoolStoreType(TypedDict):
    name: str
    bytes: int
    links: int
    secret: bool

class PoolTyped(TypedDict):
    is_nearfar: bool
    is_typed: bool
    redo: bool
    types: list[PoolStoreType]
    records: int
    chunks: int
    objects: int

class PoolFacts(TypedDict):
    kind: str
    size_bytes: int
    usable: bool
    damage: int
    notes: int
    findings: list[PoolFinding]
    header: PoolHeader
    descriptor: PoolDescriptor
    typed: PoolTyped

class PoolExamination(PoolFacts):
    logs: dict[str, PoolLogs]
    heap: PoolHeap
    types: list[PoolTypeCount]
    further_types: PoolCount
    internal_objects: PoolCount
    all_objects: PoolCount
    runs: list[PoolRuns]

class PoolLost(TypedDict):
    type: int
    name: str
    objects: int
    heads: int
    block_bytes: int
    examples: list[int]

class PoolLeaks(PoolFacts):
    replayed: bool
    by_type: bool
    objects: int
    lost: int
    lost_bytes: int
    types: list[PoolLost]

class PoolShredded(TypedDict):
    size_bytes: int
    read_from_cache: bool
    file_system: str
    copies_on_write: bool
    in_memory: bool

def pool_examine(path: str) -> PoolExamination: ...
def pool_leaks(path: str) -> PoolLeaks: ...
def pool_shred(path: str, progress: Callable[[int, int], None]) -> PoolShredded: ...

PERF_MEMORY_LEVELS: tuple[str, ...]

class PerfSamples(TypedDict):
    """A value for each sample, in the order of the file, which is not that of time."""

    pid: NDArray[np.uint32]
    tid: NDArray[np.uint32]
    time_ns: NDArray[np.uint64]
    ip: NDArray[np.uint64]
    period: NDArray[np.uint64]
    user_mode: NDArray[np.uint8]
    exact_ip: NDArray[np.uint8]
    address: NDArray[np.uint64]  # 0: not recorded
    latency_cycles: NDArray[np.uint64]  # 0: not measured
    level: NDArray[np.uint8]  # index of PERF_MEMORY_LEVELS
    load: NDArray[np.uint8]
    store: NDArray[np.uint8]
    tlb_miss: NDArray[np.uint8]
    registers_present: NDArray[np.uint32]  # bits; empty if the event samples no registers
    registers: NDArray[np.uint64]  # 24 columns, numbered as PERF_REG_X86_*

class PerfEvent(TypedDict):
    name: str
    pmu: str
    type: int
    config: int
    fields: int  # PERF_SAMPLE_* bits
    samples: PerfSamples

class PerfMapping(TypedDict):
    pid: int
    time_ns: int
    address: int
    length: int
    file_offset: int
    executable: bool
    user_mode: bool
    file: str
    build_id: str

class PerfComm(TypedDict):
    pid: int
    tid: int
    time_ns: int
    exec: bool
    name: str

class PerfTask(TypedDict):
    pid: int
    parent_pid: int
    tid: int
    parent_tid: int
    time_ns: int

class PerfBuildId(TypedDict):
    pid: int
    file: str
    build_id: str

class PerfData(TypedDict):
    cpu: str
    complete: bool
    events: list[PerfEvent]
    mappings: list[PerfMapping]
    comms: list[PerfComm]
    forks: list[PerfTask]
    exits: list[PerfTask]
    build_ids: list[PerfBuildId]
    lost: int

def read_perf_data(path: str) -> PerfData: ...

class TraceTotals(TypedDict):
    instructions: int
    loads: int
    stores: int
    l1_misses: int
    l2_misses: int
    llc_misses: int
    writebacks: int
    prefetches: int
    tlb_walks: int
    nt_stores: int
    flushes: int
    left_out: int

class TraceTouches:
    """The first 16 million records of a trace in windows, as policies want them."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...

class TraceTouched(TypedDict):
    small: list[int]  # first touches of pages, by site
    large: list[int]
    fixed_pages: int

class TraceCollected(TypedDict):
    totals: TraceTotals
    other_misses: list[int]  # of last levels of other sizes
    records: int
    size_bytes: int
    threads: int
    processes: int
    lost_threads: int
    lost_entries: int
    float_instructions: int
    executed: int
    recorded_cpu_ns: int
    programs: list[tuple[bytes, int]]  # path, instructions; most first
    touched: TraceTouched
    touches: TraceTouches

TraceKinds = dict[str, int]  # by kind: load, store, prefetch, write_back, nt_store

class TraceFrame(TypedDict):
    path: bytes
    build_id: str
    offset: int

class TraceSite(TypedDict):
    kind: str
    frames: list[TraceFrame]
    allocations: int
    allocated_bytes: int
    peak_bytes: int
    touched_objects: int
    records: TraceKinds

class TraceHeader(TypedDict):
    line_bytes: int
    after: str
    fields: list[tuple[bytes, bytes]]

class TraceStats(TraceHeader):
    totals: TraceTotals
    records: int
    kinds: TraceKinds
    dependent: int
    complete: bool
    ending: str
    exit_code: int | None
    threads: list[int]
    sites: list[TraceSite]

class TraceRow(TypedDict):
    kind: str
    address: int
    process: int
    thread: int
    code: int
    frame: TraceFrame
    instructions: int
    depends: int
    object: int
    object_address: int
    object_bytes: int
    site: int
    site_kind: str
    site_frame: TraceFrame

class TraceRows(TraceHeader):
    rows: list[TraceRow]
    ending: str

class TraceRing:
    def __init__(self, l1: tuple[int, int]) -> None: ...
    @property
    def path(self) -> str: ...

class TraceCollector:
    def __init__(
        self,
        ring: TraceRing,
        fd: int,
        l2: tuple[int, int],
        llc: tuple[int, int] | None,
        other_llcs: list[tuple[int, int]],
        tlb: list[tuple[int, int]],
        cores: int,
        prefetch: bool,
        after: str,
        fields: list[tuple[str, str]],
        max_records: int,
    ) -> None: ...
    def run(self) -> TraceCollected: ...
    def end(self, exit_code: int | None) -> None: ...

class SampledCode(TypedDict):
    file: int
    offset: int
    access: int
    bytes: int
    is_load: bool
    is_store: bool
    is_string: bool
    follows_pointer: bool
    is_readable: bool

class SampledData(TypedDict):
    kind: str
    frames: list[tuple[int, int]]
    begin: int
    bytes: int
    name: str
    least_bytes: int
    allocations: int
    allocated_bytes: int
    peak_bytes: int
    held: list[tuple[int, int]]

class ProcessPages:
    @staticmethod
    def open(process: int) -> ProcessPages: ...
    def is_current(self) -> bool: ...
    def locate(
        self, start: int, end: int, max_pages: int
    ) -> tuple[list[tuple[int, int, int]], int]: ...
    def held(
        self, start: int, end: int, max_pages: int
    ) -> tuple[list[tuple[int, int, int]], int]: ...
    def move(
        self, runs: Sequence[tuple[int, int, int]], node: int, shared: bool
    ) -> list[tuple[int, int, int]]: ...

class Sampler:
    @staticmethod
    def open(
        period_ns: int, fault_period: int, by_signals: bool = False, max_cost: float = 0.0
    ) -> Sampler: ...
    @staticmethod
    def attach(
        process: int, period_ns: int, fault_period: int, per_cpu_clock: bool = True
    ) -> Sampler: ...
    @staticmethod
    def read(path: str) -> Sampler: ...
    def log_value(self) -> str: ...
    def poll(self) -> None: ...
    def stop(self) -> None: ...
    def samples(self) -> bytes: ...
    def every(self) -> int: ...
    def code(self) -> list[SampledCode]: ...
    def data(self) -> list[SampledData]: ...
    def files(self) -> list[tuple[bytes, str]]: ...
    def regions(self) -> list[tuple[int, int, int, bytes, bool]]: ...
    def programs(self) -> list[tuple[int, bytes, int]]: ...
    def period_ns(self) -> int: ...
    def enabled_share(self) -> float: ...
    def bursts(self) -> list[int]: ...
    def lost(self) -> int: ...
    def unlogged(self) -> int: ...
    def logged(self) -> list[int]: ...

class TraceExchanged(TypedDict):
    reads: int
    writes: int
    ending: str

def trace_export(path: str, fd: int, form: str) -> TraceExchanged: ...
def trace_import(path: str, fd: int, form: str) -> TraceExchanged: ...
def trace_stats(path: str) -> TraceStats: ...
def trace_show(path: str, first: int, count: int) -> TraceRows: ...

class SimTier(TypedDict):
    reads: int
    writes: int
    device_reads: int
    device_writes: int
    row_hits: int
    activates: int
    refreshes: int
    active_power_down_ps: int
    power_down_ps: int
    self_refresh_ps: int
    buffer_hits: int
    read_time_ps: int
    read_percentiles_ns: list[int]
    read_histogram_ns: list[tuple[int, int]]
    banks: list[dict[str, int]]
    traffic_interval_ps: int
    accesses_by_interval: list[int]
    largest_read_ns: int
    energy_J: dict[str, float]
    lines_written: int
    pages_written: int
    most_line_writes: int
    most_page_writes: int

class SimOutcome(TypedDict):
    end_ps: int
    compute_ps: int
    stall_ps: int
    requests: int
    moved_pages: int
    far: SimTier
    near: SimTier

class SimDevice:
    def __init__(self, name: str, kind: str, figures: list[tuple[str, float]]) -> None: ...
    def timing_ps(self) -> dict[str, int]: ...
    def ranks(self) -> int: ...
    def check(
        self, commands: list[tuple[int, str, int, int, int, int]]
    ) -> list[tuple[str, int]]: ...

class SimPlan:
    def __init__(
        self,
        rule: str,
        near_by_default: bool,
        ranges: list[tuple[int, int, bool]],
        objects: list[int],
        near_weight: int,
        far_weight: int,
        near_bytes: int,
        move_cost_ns: float,
    ) -> None: ...

class SimSource: ...

class SimController:
    def __init__(
        self,
        page_policy: str,
        timeout_ns: float,
        scheduler: str,
        row_hit_cap: int,
        drain_from: int,
        drain_to: int,
        drain_idle: int,
        mapping: str,
        power_down_after_ns: float | None,
        self_refresh_after_ns: float | None,
    ) -> None: ...

class CosimulationActivity(TypedDict):
    reads: int
    writes: int
    row_hits: int
    activates: int
    refreshes: int
    energy_J: dict[str, float]

class Cosimulation:
    def __init__(self, device: SimDevice, controller: SimController, read_queue: int) -> None: ...
    def clock(self) -> int: ...
    def clock_ps(self) -> int: ...
    def accepts(self, address: int, write: bool) -> bool: ...
    def enqueue(self, number: int, address: int, write: bool) -> bool: ...
    def tick(self, clocks: int) -> list[tuple[int, int]]: ...
    def finish(self) -> CosimulationActivity: ...

class SyntheticSource(SimSource):
    def __init__(
        self,
        pattern: str,
        count: int,
        region_bytes: int,
        write_share: float,
        gap_ns: float,
        seed: int,
    ) -> None: ...

class TraceFacts(TypedDict):
    fields: dict[str, str]
    after: str
    records: int
    complete: bool
    ending: str
    exit_code: int | None
    instructions: int
    matched_objects: list[int]

class TraceSource(SimSource):
    def __init__(
        self,
        path: str,
        instruction_ps: float,
        rules: Sequence[tuple[int, int, Sequence[tuple[str, int]], int, int, bool]],
    ) -> None: ...
    def facts(self) -> TraceFacts: ...

def simulate(
    source: SimSource,
    near: SimDevice,
    far: SimDevice,
    controller: SimController,
    plan: SimPlan,
    engine: str,
    issue: str,
    window: int,
    posted_writes: bool,
    threads: int,
    max_requests: int,
    accept_inexact: bool,
) -> SimOutcome: ...

class TraceSiteCosts(TypedDict):
    time_ns: float  # of the slowest thread
    cpu_ns: float  # of all threads
    stall_ns: float
    instructions: int
    #: reads, prefetches, writes, dependent reads, page walks, ns of waiting
    sites: list[tuple[int, int, int, int, int, float]]

#: latency, line, write line, walk and overlapped walk in ns, page shift
_Memory = tuple[float, float, float, float, float, int]
#: ns of an instruction, window, lines in flight, TLB entries and ways, share of chained loads,
#: ns of an instruction that hide nothing
_Core = tuple[float, int, int, int, int, float, float]

class TraceSample:
    def __init__(self, path: str, max_records: int) -> None: ...
    def stats(self) -> TraceStats: ...
    @property
    def every(self) -> int: ...
    @property
    def touched(self) -> TraceTouched: ...
    def costs(
        self, placings: Sequence[tuple[_Memory, _Memory, _Core, Sequence[int]]]
    ) -> list[TraceSiteCosts]: ...
    def live_bytes(self, parts: int) -> list[tuple[float, list[int]]]: ...
    def evaluate_policies(
        self,
        policies: Sequence[tuple[str, int, int, int, _Memory, _Memory, _Core]],
        instruction_ps: float,
        touches: TraceTouches,
    ) -> list[PolicyCosts]: ...

#: (read_share, bandwidth_bytes_per_s, latency_ns)
_LoadedPoint = tuple[float, float, float]
#: points; background reads and writes, bytes/s; capacity_bytes
_LoadedTier = tuple[Sequence[_LoadedPoint], float, float, float]
#: near_stall_ns, far_stall_ns, read_bytes, write_bytes, size_bytes
_LoadedSite = tuple[float, float, float, float, float]
#: near_stall_ns, far_stall_ns, near_reads, near_writes, far_reads, far_writes
_FixedDemand = tuple[float, float, float, float, float, float]

class PlacementTime:
    def __init__(self, base_ns: float, near: _LoadedTier, far: _LoadedTier) -> None: ...
    def solve(
        self,
        sites: Sequence[_LoadedSite],
        steps: int,
        max_nodes: int,
        fixed: _FixedDemand = ...,
    ) -> Placement: ...
    def time(
        self,
        sites: Sequence[_LoadedSite],
        near_steps: Sequence[int],
        steps: int,
        fixed: _FixedDemand = ...,
    ) -> Placement | None: ...

class PolicyCosts(TraceSiteCosts):
    moved_pages: int
    near_lines: int
    far_lines: int
    far_written: int
    far_pages: int
