// What kernels and hardware do with a program's pages, judged as plans are: a Placer decides on
// each record of a trace where it goes, the core model of trace/stalls.hpp computes the cost.
//
// Time           a Placer's own (periods, rate limits) is that of the instructions so far, at the
//                constant time each that is given: the program as it runs with all data near.
// Sampling       a Placer sees all records that there are, the core model those of the sample. Of a
//                trace in windows, what was left out is given separately (trace::TouchLog).
// Thread safety  free functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "sim/placement.hpp"
#include "trace/stalls.hpp"
#include "trace/thinned_trace.hpp"

namespace nearfar::sim {

struct Following {
  Plan plan;
  trace::SitePlacement placing; ///< memories and core; its far_sites are not looked at
};

struct Followed {
  trace::Cost cost;
  std::uint64_t moved_pages = 0;
  std::uint64_t near_lines = 0; ///< records that near memory served, of all
  std::uint64_t far_lines = 0;
  std::uint64_t far_written = 0; ///< lines, of the program and of what was moved
  std::uint64_t far_pages = 0;   ///< frames that far memory needed
};

/// Goes through the records that were kept, on as many threads as there are processors. The cost is
/// that of the sample, as ThinnedTrace::costs() has it; the counts are of all records
/// that there are. `touches`: of a trace in windows, those of its collector.
/// Errors: those of Placer::create and trace::StallModel::create.
Result<std::vector<Followed>> follow(const trace::ThinnedTrace& sampled,
                                     std::span<const Following> policies, double instruction_ps,
                                     const trace::TouchLog& touches = {});

} // namespace nearfar::sim
