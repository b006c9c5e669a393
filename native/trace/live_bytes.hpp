// Live bytes of each site over the time of a trace.
//
// Purpose        the near memory that a placement requires: sites whose lifetimes do not overlap
//                can use the same memory.
// Time           is counted in records, because time passes with misses.
// Limits         objects that no record touched are only in the totals of their site.
// Thread safety  values.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/format.hpp"

namespace nearfar::trace {

struct LiveBytes {
  std::vector<std::uint64_t> max_bytes; ///< in each part of the time, most that lived at once
  double mean_share = 0;                ///< of the run that a byte lived
};

/// One for each site. `parts` > 0, `records` is how many the trace has.
std::vector<LiveBytes> live_bytes(const Tables& tables, std::uint64_t records, std::size_t parts);

} // namespace nearfar::trace
