// A stream of requests through a processor, a placement and two memories.
//
// Core           blocking: one access at a time. window: up to `window` accesses in flight, retired
//                in the order of the program; a dependent read sets out when the read before it is
//                back. trace_time: requests set out when the trace says, whatever the memory does.
// Writes         blocking: an access like any other, over when its cells are written. posted: the
//                core waits only while the memory has no room for them.
// Engines        fast: each request is timed once (FastBanks). exact: commands (ExactChannel).
//                Memories of which no commands are known (QueuedMemory) are the same in both.
// Threads        in trace time, the exact engine can simulate channels in several threads (lane.hpp);
//                the result does not depend on their number.
// Thread safety  one simulation a thread.
#pragma once

#include "sim/access_times.hpp"
#include "sim/bank_work.hpp"
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
  unsigned threads = 1;                                   ///< more than 1: exact, in trace time
  std::uint64_t max_requests = ~std::uint64_t{0};         ///< a sample: the first so many
  std::vector<Command>* commands[2] = {nullptr, nullptr}; ///< exact: far, near; all of them
};

struct TierOutcome : AccessTimes {
  Work work;
  Spent spent;
  Worn worn;
  std::vector<BankWork> banks; ///< exact engine, a memory of commands; all requests
  std::uint64_t reads = 0;     ///< of the program; what rules move is in `work` alone
  std::uint64_t writes = 0;
};

struct Outcome {
  Time end = 0;     ///< the program's
  Time compute = 0; ///< summed gaps
  Time stall = 0;   ///< of the kernel, for moving pages
  std::uint64_t requests = 0;
  std::uint64_t moved_pages = 0;
  TierOutcome tiers[2]; ///< far, near
};

/// Runs all requests of `source`.
/// Errors: bad_input (a window out of range, threads without independent channels), those of the source, the placement and the devices.
Result<Outcome> simulate(RequestSource& source, const Setup& setup);

} // namespace nearfar::sim
