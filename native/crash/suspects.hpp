// Stores of the program that look wrong in its log, so that images without them come first.
//
// Never durable  no flush and fence follow until the end of the log.
// Not logged     an operation or transaction logs others, but this one not, or too late.
// Overdue        a fence passes, and the store is not flushed. Two images lack it: that after this
//                fence, and that after the last fence before the flush, when most other stores are
//                durable.
// Unordered      the store is flushed, and another store follows before the fence.
// A correct program has a few of these, each of which costs one or two images.
// Cost           linear in the events, times the logarithm of logged ranges.
// Thread safety  none: values.
#pragma once

#include <vector>

#include "storelog/recorder.hpp"

namespace nearfar::crash {

struct Suspect {
  std::uint32_t store = 0; ///< number of the event
  std::uint32_t after = 0; ///< the power fails after this event, as soon as it makes a difference
  bool early = false;      ///< it is durable too early; else it is missing
};

/// At most four stores of each kind and source line. Batch 0 has one store for each source line and
/// each of the kinds "never durable" and "not logged", batch 1 the same for the other kinds, later
/// batches the rest. Each batch is in the order of `after`.
std::vector<std::vector<Suspect>> list_suspects(const storelog::Log& log);

} // namespace nearfar::crash
