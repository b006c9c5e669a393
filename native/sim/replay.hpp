// Simulates recorded events of a run, from idle memories. See AccuracySampler.
//
// Thread safety  one thread.
#pragma once

#include <span>

#include "sim/accuracy_sampler.hpp"
#include "sim/run.hpp"

namespace nearfar::sim {

/// Returns the times at which parts of the events end. Errors: those of the devices.
template <MemoryEngine Memory>
Result<ReplayTimes> replay_with(std::span<const SampledEvent> events, const Setup& setup) {
  Result<Run<Memory>> run = make_run<Memory>(setup, Plan{}, true);
  if (!run) return run.error();
  run->ignore_wear();
  ReplayTimes times;
  std::uint64_t issued = 0;
  for (const SampledEvent& event : events)
    switch (event.type) {
    case SampledEvent::Type::stall: run->stall(event.stall); break;
    case SampledEvent::Type::move: run->move(event.placed); break;
    case SampledEvent::Type::issue:
      run->issue(event.request, event.placed);
      if (++issued % AccuracySampler::part_requests == 0) times.parts.push_back(run->now());
      break;
    }
  Result<Outcome> outcome = run->finish(0);
  if (!outcome) return outcome.error();
  times.end = outcome->end;
  return times;
}

} // namespace nearfar::sim
