// The runs of both engines; see simulate.hpp.
#pragma once

#include <span>

#include "sim/accuracy_sampler.hpp"

namespace nearfar::sim {

Result<Outcome> run_fast(RequestSource& source, const Setup& setup);
Result<Outcome> run_exact(RequestSource& source, const Setup& setup);
/// The exact engine in trace time, in Setup::threads threads.
Result<Outcome> run_lanes(RequestSource& source, const Setup& setup);

/// The times that the events of a sample take, from idle memories.
Result<ReplayTimes> replay_fast(std::span<const SampledEvent> events, const Setup& setup);
Result<ReplayTimes> replay_exact(std::span<const SampledEvent> events, const Setup& setup);

} // namespace nearfar::sim
