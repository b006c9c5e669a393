// How much memory each site held, over the time of a trace.
//
// Purpose        what a placement has to fit: sites that live one after the other share near
//                memory.
// Time           is counted in records: where misses are, time passes.
// Limits         objects that no record touched are in the totals of their site alone.
// Thread safety  values.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/format.hpp"

namespace nearfar::trace {

struct Life {
  std::vector<std::uint64_t> max_bytes; ///< in each part of the time, most that lived at once
  double mean_share = 0;                ///< of the run that a byte lived
};

/// One for each site. `parts` > 0, `records` is how many the trace has.
std::vector<Life> lives(const Tables& tables, std::uint64_t records, std::size_t parts);

} // namespace nearfar::trace
