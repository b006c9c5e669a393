"""Sets of words that flags and records accept, each defined once.

The command line reads them as choices of its flags, records and functions as types. This module
imports nothing, because ``nearfar --help`` loads it.
"""

from __future__ import annotations

from typing import Literal

#: The near memory of programs that choose none.
DEFAULT_TIER = "dram"

#: Side of a benchmark with two memories.
Side = Literal["near", "far"]
#: Direction of the far threads' copies: source, then destination.
CompeteMode = Literal["far-far", "far-near", "near-far"]
#: Access of a side to border rows of the other side: directly, or to copies of its own.
StencilVersion = Literal["direct", "ghost"]
#: Stencils that `bench stencil` applies: eight neighbors in 2D, seven points in 3D.
StencilKernel = Literal["stencil8", "stencil7"]
#: Stencils whose split a model predicts.
SplitKernel = Literal["stencil8"]
#: nearfar's model of a split, or the two equations of the Oslo thesis.
SplitModel = Literal["nearfar", "oslo"]
#: Stages of `bench pipeline`, and waits between them.
PipelineStage = Literal["generate", "generate_idle", "transfer", "analyse", "transfer_idle"]

#: Operations of a map.
MapOperation = Literal["insert", "get", "remove"]
#: nearfar's map, its volatile counterpart in DRAM, and three maps after PMDK's.
MapType = Literal["map", "dram", "map_atomic", "map_tx", "map_rp"]
#: Reference that `bench map` also measures.
MapReference = Literal["pmdk"]
#: nearfar's model of a map, or one of the two models of the Nicosia thesis.
MapModel = Literal["replay", "counters", "structure"]
#: Source of counters that was requested.
CounterMode = Literal["auto", "perf", "simulated", "off"]
#: Source of counters that was used.
CounterSource = Literal["perf", "simulated", "perf and simulated"]
#: Medium of a set of integers.
IntsetMedium = Literal["pmem", "unflushed", "dram", "pmdk", "pmdk_atomic", "pmdk_rp"]
#: Structures whose time a model predicts: nearfar's, and those on libpmemobj.
SetName = Literal[
    "list", "hash", "skip_list", "list_tx", "skip_list_tx", "map_atomic", "map_tx", "map_rp"
]

#: Tests of `bench malloc`.
MallocTest = Literal["small", "large", "free-loop", "half-free-loop", "warm"]
#: Sorting algorithms of the Seoul thesis.
SortAlgorithm = Literal["quick", "merge"]
#: Programs of the Seoul thesis.
ProgramName = Literal["quick", "merge", "lbm", "matmul"]
#: Allocation of arrays: mapped from a tier, or as objects of a pool on it.
Accessor = Literal["mapped", "pmemobj"]

#: Transfer methods of `bench mapped`, and those that mmap is compared with.
TransferMethod = Literal["mapped", "buffered", "direct", "uring"]
OtherMethod = Literal["buffered", "direct", "uring"]
TransferDirection = Literal["read", "write"]
TransferPattern = Literal["sequential", "random"]
#: State of a file's pages before a transfer; ratios have no resident ones.
Warmth = Literal["cold", "warm", "resident"]
RatioWarmth = Literal["cold", "warm"]
#: Order of independent accesses.
AccessOrder = Literal["sequential", "strided", "random"]
#: Cause of a drop in bandwidth.
DropCause = Literal["page faults", "steal", "pushed aside", "unexplained"]

#: Row-buffer policies.
PagePolicy = Literal["open", "closed", "timeout"]
#: Which of the waiting requests goes first: the first ready one, or the oldest.
Scheduler = Literal["fr-fcfs", "fcfs"]
#: Whether a write blocks the program.
WritePolicy = Literal["blocking", "posted"]
#: The fast engine times each request once, the exact one simulates every command.
EngineName = Literal["fast", "exact"]
#: auto: the fast engine where it is within 5 % of the exact one, else the exact one; fast, exact:
#: this one; both: both, and their difference.
EngineChoice = Literal["auto", "fast", "exact", "both"]
#: When the core issues the next request.
CoreModel = Literal["blocking", "window", "trace-time"]
#: Synthetic streams of requests.
StreamPattern = Literal["sequential", "random", "chase"]

#: Recorders of the accesses of a program.
TraceRecorder = Literal["qemu", "instrumented"]
#: The cache level behind which a trace is taken.
TraceLevel = Literal["l1", "l2", "llc"]
#: Trace formats of other simulators.
TraceFormat = Literal["ramulator", "dramsim3", "dramsys", "champsim"]
#: Caches before the accesses of an experiment.
ExperimentLevel = Literal["l1", "l2", "published counts"]
#: Memory that a rule of a plan is for: heap blocks, mappings of the program, its global variables.
RuleMemory = Literal["heap", "mapping", "globals"]
#: Kinds of allocation sites.
SiteKind = Literal["unknown", "heap", "stack", "statics", "mapping", "code"]
#: Other tools for placement, for which advice writes scripts.
PlacementTool = Literal["damo", "numactl", "weighted-interleave", "memkind"]
#: Ways in which advice observes a program.
AdviceMethod = Literal["sampled", "emulated"]
#: Where advice puts a site.
Placing = Literal["near", "far", "interleaved", "fixed"]
#: Policies that advice compares with a plan.
PolicyName = Literal["first-touch", "interleave", "hot-pages", "clock-dwf", "memory-mode"]

#: Power-fail protection: of flushed lines only (adr), or of the caches, too (eadr).
Platform = Literal["adr", "eadr"]
#: Structures that `crash check` explores.
CrashStructure = Literal[
    "map", "list", "skip_list", "queue", "move", "map_atomic", "map_tx", "map_rp"
]
#: Recovery of an image of a structure on libpmemobj: by nearfar's own code, or by the library.
Recovery = Literal["replayed", "library"]
#: Recorders of the stores of a program.
StoreRecorder = Literal["preload", "instrumented"]
#: Build step that compiler flags are for.
BuildStep = Literal["compile", "link"]
#: Tools whose outputs become profiles.
OtherTool = Literal["mess", "mlc", "stream"]

DevelopmentPackage = Literal["hmalloc", "persist", "sim"]
