// Simulates recorded events of a run, from idle memories. See AccuracySampler.
//
// Thread safety  one thread.
#pragma once

#include <span>

#include "sim/accuracy_sampler.hpp"
#include "sim/run.hpp"

namespace nearfar::sim {

/// Returns the time that the events take. Errors: those of the devices.
template <MemoryEngine Memory>
Result<Time> replay_with(std::span<const SampledEvent> events, const Setup& setup) {
  Result<Run<Memory>> run = make_run<Memory>(setup, Plan{}, true);
  if (!run) return run.error();
  run->ignore_wear();
  for (const SampledEvent& event : events)
    switch (event.type) {
    case SampledEvent::Type::stall: run->stall(event.stall); break;
    case SampledEvent::Type::move: run->move(event.placed); break;
    case SampledEvent::Type::issue: run->issue(event.request, event.placed); break;
    }
  Result<Outcome> outcome = run->finish(0);
  if (!outcome) return outcome.error();
  return outcome->end;
}

} // namespace nearfar::sim
