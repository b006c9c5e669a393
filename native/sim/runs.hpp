// The runs of both engines; see simulate.hpp.
#pragma once

#include "sim/simulate.hpp"

namespace nearfar::sim {

Result<Outcome> run_fast(RequestSource& source, const Setup& setup);
Result<Outcome> run_exact(RequestSource& source, const Setup& setup);
/// The exact engine in trace time, in Setup::threads threads.
Result<Outcome> run_lanes(RequestSource& source, const Setup& setup);

} // namespace nearfar::sim
