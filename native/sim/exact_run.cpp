#include "sim/exact_memory.hpp"
#include "sim/run.hpp"
#include "sim/runs.hpp"

namespace nearfar::sim {

Result<Outcome> run_exact(RequestSource& source, const Setup& setup) {
  return run_with<ExactMemory>(source, setup);
}

} // namespace nearfar::sim
