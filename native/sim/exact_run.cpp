#include "sim/exact_memory.hpp"
#include "sim/replay.hpp"
#include "sim/runs.hpp"

namespace nearfar::sim {

Result<Outcome> run_exact(RequestSource& source, const Setup& setup) {
  Result<Run<ExactMemory>> run = make_run<ExactMemory>(setup, setup.plan, source.physical());
  if (!run) return run.error();
  return run->run(source);
}

Result<ReplayTimes> replay_exact(std::span<const SampledEvent> events, const Setup& setup) {
  return replay_with<ExactMemory>(events, setup);
}

} // namespace nearfar::sim
