// Simulates a stream of requests: a core, a placement, and two memories.
//
// Core           blocking: one access at a time. window: up to `window` accesses in flight, retired
//                in program order; a dependent read is sent when its producer has completed.
//                trace_time: requests are sent at the times of the trace and wait for no other.
// Writes         blocking: the core waits until the cells are written. posted: the core waits only
//                while the write queue is full.
// Engines        fast: each request is timed once (FastBanks). exact: each command is issued
//                (ExactChannel). Devices without command timings use QueuedMemory in both.
// Threads        In trace time, the exact engine simulates channels in several threads (lane.hpp).
//                The result does not depend on their number.
// Thread safety  concurrent calls of simulate() are independent.
#pragma once

#include "sim/access_times.hpp"
#include "sim/bank_activity.hpp"
#include "sim/command.hpp"
#include "sim/controller.hpp"
#include "sim/placement.hpp"
#include "sim/wear.hpp"

namespace nearfar::sim {

enum class Engine : unsigned char { fast, exact };
enum class Issue : unsigned char { blocking, window, trace_time };

struct Core {
  Issue issue = Issue::window;
  unsigned window = 10; ///< 1 to max_window
  bool posted_writes = true;
};

constexpr unsigned max_window = 1024;

struct Setup {
  Device near;
  Device far;
  Controller near_controller;
  Controller far_controller;
  Plan plan;
  Core core;
  Engine engine = Engine::fast;
  /// Fast engine: do not refuse settings and results for which it may differ from the exact engine
  /// by more than 5 %.
  bool accept_inexact = false;
  unsigned threads = 1; ///< above 1: only for the exact engine in trace time
  std::uint64_t max_requests = ~std::uint64_t{0}; ///< only the first N are simulated
  /// Exact engine: the vectors to which all commands of far and of near memory are appended; null:
  /// commands are not recorded.
  std::vector<Command>* commands[2] = {nullptr, nullptr};
};

struct TierOutcome : AccessTimes {
  Activity activity;
  EnergyParts energy;
  WearSummary wear;
  std::vector<BankActivity> banks; ///< empty for the fast engine and for queued devices
  std::uint64_t reads = 0;         ///< requests of the program; `activity` includes migrations
  std::uint64_t writes = 0;
};

/// Times of both engines in samples of a run of the fast engine (AccuracySampler).
struct SampledTimes {
  std::uint64_t requests = 0; ///< in all samples; 0: not sampled
  /// Time of the fast engine over that of the exact one, less one: both from idle memories.
  double difference = 0;
  double error = 0; ///< standard error of `difference`
  /// The same with the time of the fast engine in the run. The phase of refreshes may differ.
  double run_difference = 0;
  /// Time that the program waits for memory, in ps, as the samples predict it.
  double waited = 0;
};

struct Outcome {
  Time end = 0;     ///< end of the run: of the program, or of its last access if that is later
  Time compute = 0; ///< sum of the gaps
  Time stall = 0;   ///< kernel time of page migrations
  std::uint64_t requests = 0;
  std::uint64_t moved_pages = 0;
  TierOutcome tiers[2]; ///< far, near
  SampledTimes sampled;
};

/// Runs all requests of `source`.
/// Errors: bad_input (a window out of range, settings that the engine does not model, threads
/// without independent channels, a result of the fast engine that is not accurate); those of the
/// source, the placement and the devices.
Result<Outcome> simulate(RequestSource& source, const Setup& setup);

} // namespace nearfar::sim
