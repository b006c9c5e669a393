"""Results of ``nearfar advise``: placement, cost and uncertainty."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from nearfar.records.choices import AdviceMethod, Placing, PolicyName, SiteKind
from nearfar.records.depth import LoadedTier
from nearfar.records.figures import Amount, Answer, Count, FigureModel, ObservationModel, Share

#: Begins the note of a peak bandwidth that the measuring threads did not reach.
LOWER_BOUND = "a lower bound"
#: A fraction of the samples with unknown addresses above which an answer is uncertain.
MUCH_UNKNOWN = 0.1
#: Note on the bandwidth of a memory whose profile has none.
ASSUMED = "assumed: its profile has no bandwidth"
#: Begins the note of a bandwidth that is limited by this machine's threads, not by the device.
CAPPED = "capped by what this machine's threads can draw"
#: Like ``CAPPED``, for a measured tier of this machine whose latency is not below near memory's.
CAPPED_LIKE_NEAR = "capped at that of near memory, which answers no later"
_PEAK = "read bandwidth of all threads, where the profile has it or it was measured"


class SiteAdvice(FigureModel):
    """An allocation site of the program. Its counts are estimates if the program was sampled."""

    remarks: ClassVar[frozenset[str]] = frozenset(
        {
            "site",
            "chain",
            "size_bytes",
            "allocated_bytes",
            "allocations",
            "reads",
            "writes",
            "verdict",
        }
    )

    site: Count
    kind: SiteKind
    at: str = Field(description="source line, object file and offset, or the kernel's name")
    part_bytes: list[Count | None] = Field(
        default_factory=list,
        description="begin and end in the mapping, if its parts are sites of their own; end null: "
        "all that follows",
    )
    block_bytes: list[Count | None] = Field(
        default_factory=list,
        description="smallest and largest size of its blocks, if those of one call are divided by "
        "size; null: any",
    )
    chain: list[str] = Field(default_factory=list, description="return addresses, innermost first")
    functions: list[str] = Field(
        default_factory=list,
        description="FUNCTION FILE:LINE of the call chain, inlined calls included, innermost first",
    )
    size_bytes: Count = Field(
        description="heap: peak live bytes, of large blocks only the touched part; other memory: "
        "bytes of touched pages"
    )
    allocated_bytes: Count
    allocations: Count
    life_share: Share = Field(description="mean lifetime of a byte, as a fraction of the run")
    reads: Count = Field(
        description="lines read from memory, prefetched ones included; for a sampled run the "
        "number of waits one after another, and of lines in streams"
    )
    writes: Count = Field(description="lines written to memory; estimated if it was sampled")
    dependent_share: Share = Field(
        description="fraction of reads whose address was loaded just before"
    )
    stall_share: Share = Field(description="of all waiting, with all data far")
    far_time_s: float = Field(description="added CPU time in s if the site is far")
    first_touch_s: float = Field(
        0.0, description="CPU time that first touches of its pages add when it is far"
    )
    verdict: Placing = Field(
        description="where the plan places it; fixed: no plan can move it, and it stays near; "
        "interleaved: its pages are on both memories"
    )
    near_share: Share | None = Field(None, description="of its pages, if it is interleaved")


class BudgetPoint(FigureModel):
    """A point of the curve: a near budget, and the cost of the best plan found for it."""

    remarks: ClassVar[frozenset[str]] = frozenset({"near_bytes", "exact", "interleaved"})

    near_budget_bytes: Count
    near_bytes: Count = Field(description="most that this plan keeps near at once")
    slowdown: Amount
    exact: bool = Field(
        description="whether no other set of sites saves over 0.1 % more, if the cost of a set is "
        "the sum of the costs of its sites"
    )
    interleaved: bool = Field(False, description="the plan has sites on both memories")
    price: Amount | None = Field(None, description="of the movable memory")


class WithinPoint(FigureModel):
    """The smallest near memory on the curve that keeps the slowdown within ``within_slowdown``."""

    remarks: ClassVar[frozenset[str]] = frozenset({"near_bytes"})

    within_slowdown: Amount
    near_bytes: Count
    slowdown: Amount
    price: Amount | None = None


class PolicyAdvice(FigureModel):
    """Predicted result of a policy of the kernel or hardware, without a plan."""

    remarks: ClassVar[frozenset[str]] = frozenset({"near_bytes", "moved_pages", "far_writes"})

    policy: PolicyName
    near_bytes: Count = Field(description="what the plan keeps near, and what is fixed")
    slowdown: Amount
    time_s: Amount
    moved_pages: Count
    near_share: Share = Field(description="of the lines read and written")
    far_writes: Count = Field(description="lines, of the program and of what was moved")


class FractionAdvice(FigureModel):
    """A plan that interleaves sites on both memories, given the traffic of the program itself.

    Slowdowns are of CPU time.
    """

    remarks: ClassVar[frozenset[str]] = frozenset({"applied", "exact", "near_bytes"})

    applied: bool = Field(description="the plan has it; otherwise it saves less than 1 % of time")
    exact: bool = Field(description="no placement of these sites is faster; false: not known")
    near_bytes: Count = Field(description="most movable memory that it keeps near at once")
    slowdown: Amount
    whole_sites_slowdown: Amount = Field(description="of the plan in which each site is whole")
    all_far_slowdown: Amount
    near_load: LoadedTier
    far_load: LoadedTier


class FarAdvice(FigureModel):
    """Advice for one far memory.

    Slowdowns are ratios of CPU times, against all data in near memory. Times are wall times.
    """

    remarks: ClassVar[frozenset[str]] = frozenset(
        {"near_bytes", "knee_bytes", "far_writes", "lacking"}
    )

    far: str
    far_latency_ns: Amount | None = Field(None, description="read latency used by the model")
    far_bandwidth_bytes_per_s: Amount | None = Field(
        None, description="read bandwidth of one thread, used by the model"
    )
    far_peak_bytes_per_s: Amount | None = Field(None, description=_PEAK)
    far_page_bytes: Count | None = Field(None, description="of its pages, for walks and first uses")
    far_page_walk_ns: Amount | None = Field(
        None, description="added to the latency by a page walk; absent if its pages need none"
    )
    all_far_load: LoadedTier | None = Field(
        None,
        description="far memory with all data far; absent if traffic is too low to add to "
        "latencies, or not known: slowdowns are then those on idle memories",
    )
    slowdown_all_far: Amount = Field(description="heap, stack, globals and mappings far")
    slowdown_movable_far: Amount
    slowdown_plan: Amount
    time_all_far_s: Amount
    time_movable_far_s: Amount
    time_plan_s: Amount
    near_bytes: Count = Field(description="most movable memory that the plan keeps near at once")
    knee_bytes: Count = Field(description="where the curve bends: more near memory gains little")
    curve: list[BudgetPoint]
    within: list[WithinPoint]
    far_writes: Count = Field(description="lines written to far memory under the plan")
    lifetime_years: Amount | None = Field(
        None,
        description="of a far memory as large as the movable one, writes spread evenly over it",
    )
    energy_all_near_J: Amount | None = Field(None, description="of both memories")  # noqa: N815
    energy_all_far_J: Amount | None = None  # noqa: N815
    energy_plan_J: Amount | None = None  # noqa: N815
    currency: str | None = None
    price_all_near: Amount | None = Field(None, description="of the movable memory")
    price_all_far: Amount | None = None
    price_plan: Amount | None = None
    lacking: list[str] = Field(
        default_factory=list, description="what of energy, wear and price is not known, and why"
    )
    fractions: FractionAdvice | None = Field(
        None, description="absent if no site can be placed on both memories"
    )
    policies: list[PolicyAdvice] = Field(default_factory=list)
    sites: list[SiteAdvice]


class ObservedProgram(ObservationModel):
    """A program of the run, over all its processes."""

    path: str = Field(description="of a sampled one the name, at most 15 characters")
    instructions: Count | None = Field(default=None, description="if it was traced")
    cpu_share: Share | None = Field(
        default=None, description="of the user CPU time of a sampled run"
    )


class AdviceResult(FarAdvice, Answer):
    """Section ``advice``: the advice for the first far memory; ``fars`` has that for all."""

    #: Keys that may differ between two results whose figures `compare` matches.
    remarks: ClassVar[frozenset[str]] = (
        Answer.remarks
        | FarAdvice.remarks
        | {"movable_bytes", "fixed_bytes", "plan", "pid", "samples", "records", "host_epochs"}
        | {"provisional", "disturbed", "run_disturbed"}
    )
    first_repeats_own: ClassVar[frozenset[str]] = frozenset({"fars"})

    program: list[str]
    programs: list[ObservedProgram] = Field(
        default_factory=list, description="the program and those that it started"
    )
    method: AdviceMethod = Field("emulated", description="how the program was observed")
    pid: Count | None = Field(None, description="of the process, if it was running before")
    perf: str | None = Field(None, description="file of perf that the samples come from")
    samples: Count | None = Field(None, description="of user CPU time, if it was sampled")
    sampling_period_s: Amount | None = Field(None, description="CPU time between two samples")
    sampling_share: Amount | None = Field(
        None,
        description="fraction of the time in which the clock took samples: each stands for the "
        "period over this share",
    )
    host: str
    near: str
    near_latency_ns: Amount | None = Field(None, description="read latency used by the model")
    near_bandwidth_bytes_per_s: Amount | None = Field(
        None, description="read bandwidth of one thread, used by the model"
    )
    near_peak_bytes_per_s: Amount | None = Field(None, description=_PEAK)
    near_page_bytes: Count | None = Field(None, description="of its pages")
    near_page_walk_ns: Amount | None = Field(
        None, description="added to the latency by a page walk; absent if its pages need none"
    )
    last_cache_bytes: Count | None = Field(
        None, description="of the cache before memory, modeled; 0: none"
    )
    host_epochs: Count | None = Field(
        None, description="number of repeats, if the host was measured here"
    )
    provisional: bool = Field(
        False, description="measured too briefly to include variation over minutes"
    )
    disturbed: bool = Field(
        False, description="other programs ran while the host was measured provisionally"
    )
    run_disturbed: bool = Field(False, description="other programs ran while it was observed")
    standard_input: str = Field(
        "", description="path of the file used as standard input; empty: none"
    )
    near_budget_bytes: Count | None = None
    movable_bytes: Count = Field(
        description="peak bytes that a plan can place: live heap blocks, and touched mappings and "
        "globals of at least 1 MiB each"
    )
    fixed_bytes: Count = Field(
        description="pages touched of memory outside of the heap that no plan moves, such as "
        "stacks: near in every plan"
    )
    time_near_s: Amount = Field(
        description="wall time of the program with its data near, not under an emulator"
    )
    cpu_near_s: Amount | None = Field(
        None, description="CPU time with its data near: slowdowns are of it"
    )
    observed_on: str = Field(
        "",
        description="memory that the program ran on while it was observed; empty: near memory. "
        "Otherwise the near times are predicted from the observed ones",
    )
    observed_latency_ns: Amount | None = Field(None, description="read latency of that memory")
    time_observed_s: Amount | None = Field(None, description="wall time on that memory")
    cpu_observed_s: Amount | None = Field(None, description="CPU time on that memory")
    unseen_share: Share = Field(
        0.0, description="of the CPU time: in programs that it started and that cannot be traced"
    )
    unknown_share: Share = Field(
        0.0, description="of the samples: at accesses to an address that is unknown"
    )
    traced_time_s: Amount | None = Field(None, description="if it was traced")
    records: Count | None = Field(None, description="lines of the trace")
    sampled_share: Share | None = Field(
        None, description="of the records that the model went through"
    )
    plan: str | None = Field(None, description="the plan file")
    fars: list[FarAdvice] = Field(default_factory=list)
