#include "sim/simulate.hpp"

#include <cmath>

#include "sim/runs.hpp"

namespace nearfar::sim {

namespace {

// Bounds of the fast engine: within them its time is within 5 % of that of the exact engine
// (benchmarks/results/simulator.md).
constexpr unsigned max_accurate_window = 32;
constexpr double max_accurate_lag = 0.05; ///< of a trace's time, behind which requests end
/// Of both engines in samples, with its standard error times sampled_errors.
constexpr double max_sampled_difference = 0.045;
constexpr double sampled_errors = 2;
constexpr double max_difference = 0.05; ///< of a run that is simulated by both engines as a whole
constexpr double max_run_difference = 0.05; ///< as SampledTimes::run_difference
/// Maximum difference between the time in which a run waits for memory and that which its samples
/// predict, as a fraction of the run's time. They differ if the write queues of the fast engine
/// fill later than in the samples, or if a program has phases of which the samples are not typical.
constexpr double max_unpredicted_wait = 0.05;
constexpr double few_writes = 0.05; ///< of all requests: reads alone do not differ as much by phase

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
      refused = "the order of more than 32 accesses in flight";
  }
  if (!refused) return Done{};
  return Error::make(Errc::bad_input, "the fast engine does not model %s", refused)
      .try_next("choose the exact engine (--engine exact)");
}

double fraction(auto part, auto whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

/// Time in which the program waits for memory.
double waited_of(const Outcome& outcome) {
  return static_cast<double>(outcome.end) - static_cast<double>(outcome.compute + outcome.stall);
}

/// Refuses a trace that sends more requests than the memory can serve: the fast engine does not
/// model how a scheduler reorders long queues.
Status check_lag(const Setup& setup, const Outcome& outcome) {
  const bool has_commands =
      setup.near.kind == MemoryKind::commands || setup.far.kind == MemoryKind::commands;
  if (!has_commands || fraction(waited_of(outcome), outcome.end) <= max_accurate_lag) return Done{};
  return Error::make(Errc::bad_input,
                     "the fast engine is not within 5 %% of the exact one here: the memory is "
                     "slower than the trace sends requests")
      .try_next("choose the exact engine (--engine exact)");
}

/// Refuses a result if the engines differ in samples of it, or may differ outside of them.
Status check_samples(const SampledTimes& sampled, std::uint64_t requests) {
  const double error = sampled_errors * sampled.error;
  const double max = sampled.requests == requests ? max_difference : max_sampled_difference;
  const bool in_run = std::abs(sampled.run_difference) > max_run_difference;
  if (!in_run && std::abs(sampled.difference) + error <= max) return Done{};
  return Error::make(Errc::bad_input,
                     "the fast engine is not within 5 %% of the exact one here: its time differs "
                     "by %+.1f ± %.1f %% in samples of %llu requests",
                     100 * (in_run ? sampled.run_difference : sampled.difference), 100 * error,
                     static_cast<unsigned long long>(sampled.requests))
      .try_next("choose the exact engine (--engine exact)");
}

/// Refuses a result with posted writes whose samples are not typical of the run.
Status check_writes(const Setup& setup, const Outcome& outcome) {
  const std::uint64_t writes = outcome.tiers[0].writes + outcome.tiers[1].writes;
  const bool few = fraction(writes, outcome.requests) <= few_writes;
  const double waited = fraction(waited_of(outcome), outcome.end);
  const double predicted = fraction(outcome.sampled.waited, outcome.end);
  if (!setup.core.posted_writes || few || std::abs(waited - predicted) <= max_unpredicted_wait)
    return Done{};
  return Error::make(
             Errc::bad_input,
             "the fast engine may not be within 5 %% of the exact one here: its program, "
             "with posted writes, waits for memory for %.0f %% of its time, and for %.0f %% "
             "according to samples of %llu requests",
             100 * waited, 100 * predicted,
             static_cast<unsigned long long>(outcome.sampled.requests))
      .try_next("choose the exact engine (--engine exact)");
}

/// Refuses a result of the fast engine that is not accurate.
Status check_accuracy(const Setup& setup, const Outcome& outcome) {
  if (setup.accept_inexact) return Done{};
  if (setup.core.issue == Issue::trace_time) return check_lag(setup, outcome);
  if (Status checked = check_samples(outcome.sampled, outcome.requests); !checked)
    return checked.error();
  return outcome.sampled.requests > 0 ? check_writes(setup, outcome) : Status(Done{});
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
