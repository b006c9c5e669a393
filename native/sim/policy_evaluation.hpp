// Evaluates placement policies of kernels and hardware on a trace, with the cost model of plans: a
// Placer places each record, and the core model of trace/stalls.hpp computes the cost.
//
// Time           The time of a Placer (periods, rate limits) is the number of instructions so far
//                times `instruction_ps`: the program with all data in near memory.
// Sampling       A Placer receives all records, the core model those of the sample. The records
//                between the windows of a trace are given by trace::TouchLog.
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

struct PolicySetup {
  Plan plan;
  trace::SitePlacement placing; ///< memories and core; far_sites is ignored
};

struct PolicyOutcome {
  trace::Cost cost;
  std::uint64_t moved_pages = 0;
  std::uint64_t near_lines = 0;  ///< records served by near memory
  std::uint64_t far_lines = 0;   ///< records served by far memory
  std::uint64_t far_written = 0; ///< lines written to far memory, including migrations
  std::uint64_t far_pages = 0;   ///< frames used in far memory
};

/// Evaluates each policy on the records of `sampled`, in one thread per CPU. The cost is that of
/// the sample, as in ThinnedTrace::costs(). The counts are of all records, with `touches` between
/// the windows of a trace. Errors: those of Placer::create and trace::StallModel::create.
Result<std::vector<PolicyOutcome>> evaluate_policies(const trace::ThinnedTrace& sampled,
                                                     std::span<const PolicySetup> policies,
                                                     double instruction_ps,
                                                     const trace::TouchLog& touches = {});

} // namespace nearfar::sim
