#include "sim/simulate.hpp"

#include <cmath>

#include "sim/runs.hpp"

namespace nearfar::sim {

namespace {

// Bounds of the fast engine: within them its time is within 5 % of that of the exact engine
// (benchmarks/results/simulator.md).
constexpr unsigned max_accurate_window = 16;
constexpr double max_accurate_writes = 0.05; ///< posted, of all requests; more if the program
constexpr double max_accurate_wait = 0.1;    ///< waits for no more than this fraction of its time
constexpr double max_accurate_lag = 0.05;    ///< of a trace's time, behind which requests end
/// Of both engines in samples: less than 5 %, because samples differ from the whole run.
constexpr double max_sampled_difference = 0.035;
constexpr double max_run_difference = 0.05; ///< as SampledTimes::run_difference

/// Refuses settings that the fast engine does not model, or in which it differs from the exact
/// engine by more than 5 %.
Status check_fast(const Device& device, const Controller& controller, const Setup& setup) {
  const Core& core = setup.core;
  const char* refused = nullptr;
  if (controller.scheduler == Scheduler::fcfs || controller.row_hit_cap)
    refused = "schedulers other than FR-FCFS without a cap";
  if (device.organization.refresh_sets > 1) refused = "refresh sets of fewer banks than a rank has";
  if (device.kind == MemoryKind::commands) {
    if (controller.power_down_after != never || controller.self_refresh_after != never)
      refused = "power states";
    if (controller.page == PagePolicy::timeout) refused = "the row policy timeout";
    if (core.issue == Issue::window && core.window > 1 && !core.posted_writes)
      refused = "more than one blocking write in flight";
    if (core.issue == Issue::window && core.window > max_accurate_window && !setup.accept_inexact)
      refused = "the order of more than 16 accesses in flight";
  }
  if (!refused) return Done{};
  return Error::make(Errc::bad_input, "the fast engine does not model %s", refused)
      .try_next("choose the exact engine (--engine exact)");
}

double fraction(auto part, auto whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

/// Fraction of its time in which the program waits for memory.
double waited_of(const Outcome& outcome) {
  return 1 - fraction(outcome.compute + outcome.stall, outcome.end);
}

/// Refuses a trace that sends more than the memory serves: the fast engine does not model how a
/// scheduler reorders long queues.
Status check_lag(const Setup& setup, const Outcome& outcome) {
  const bool has_commands =
      setup.near.kind == MemoryKind::commands || setup.far.kind == MemoryKind::commands;
  if (!has_commands || waited_of(outcome) <= max_accurate_lag) return Done{};
  return Error::make(Errc::bad_input,
                     "the fast engine is not within 5 %% of the exact one here: the memory is "
                     "slower than the trace sends requests")
      .try_next("choose the exact engine (--engine exact)");
}

/// Refuses a result in which posted writes delay the program: the fast engine does not model how
/// reads and writes disturb each other on a busy memory.
Status check_writes(const Setup& setup, const Outcome& outcome) {
  if (!setup.core.posted_writes) return Done{};
  std::uint64_t writes = 0;
  for (const unsigned near : {0u, 1u})
    if ((near ? setup.near : setup.far).kind == MemoryKind::commands)
      writes += outcome.tiers[near].writes;
  const double written = fraction(writes, outcome.requests);
  const double waited = waited_of(outcome);
  if (written <= max_accurate_writes || waited <= max_accurate_wait) return Done{};
  return Error::make(Errc::bad_input,
                     "the fast engine is not within 5 %% of the exact one here: %.0f %% of the "
                     "accesses are posted writes, and the program waits for memory for %.0f %% of "
                     "its time",
                     100 * written, 100 * waited)
      .try_next("choose the exact engine (--engine exact)");
}

/// Refuses a result whose samples differ between the engines.
Status check_samples(const SampledTimes& sampled) {
  const double run = sampled.run_difference;
  const bool in_run = std::abs(run) > max_run_difference;
  if (!in_run && std::abs(sampled.difference) <= max_sampled_difference) return Done{};
  return Error::make(Errc::bad_input,
                     "the fast engine is not within 5 %% of the exact one here: its time differs "
                     "by %+.1f %% in samples of %llu requests",
                     100 * (in_run ? run : sampled.difference),
                     static_cast<unsigned long long>(sampled.requests))
      .try_next("choose the exact engine (--engine exact)");
}

/// Refuses a result of the fast engine that is not accurate.
Status check_accuracy(const Setup& setup, const Outcome& outcome) {
  if (setup.accept_inexact) return Done{};
  if (setup.core.issue == Issue::trace_time) return check_lag(setup, outcome);
  if (Status checked = check_writes(setup, outcome); !checked) return checked.error();
  return check_samples(outcome.sampled);
}

/// More than one thread requires that channels are independent of each other.
Status check_threads(const Setup& setup) {
  const bool independent = setup.engine == Engine::exact && setup.core.issue == Issue::trace_time;
  if (setup.threads <= 1 || independent) return Done{};
  return Error::make(Errc::bad_input,
                     "%u threads: channels depend on each other if a core waits for its accesses, "
                     "and the fast engine has one thread",
                     setup.threads)
      .try_next("choose one thread, or the exact engine and the core trace-time");
}

} // namespace

Result<Outcome> simulate(RequestSource& source, const Setup& setup) {
  if (setup.core.window == 0 || setup.core.window > max_window)
    return Error::make(Errc::bad_input, "a window of %u accesses in flight is not modeled",
                       setup.core.window)
        .try_next("give 1 to %u", max_window);
  if (Status checked = check_threads(setup); !checked) return checked.error();
  const std::pair<const Device&, const Controller&> memories[] = {
      {setup.near, setup.near_controller}, {setup.far, setup.far_controller}};
  for (const auto& [device, controller] : memories) {
    if (Status checked = check(controller); !checked) return checked.error();
    if (setup.engine == Engine::exact) continue;
    if (Status checked = check_fast(device, controller, setup); !checked) return checked.error();
  }
  if (setup.engine == Engine::fast) {
    Result<Outcome> outcome = run_fast(source, setup);
    if (!outcome) return outcome;
    if (Status checked = check_accuracy(setup, *outcome); !checked) return checked.error();
    return outcome;
  }
  return setup.core.issue == Issue::trace_time ? run_lanes(source, setup)
                                               : run_exact(source, setup);
}

} // namespace nearfar::sim
