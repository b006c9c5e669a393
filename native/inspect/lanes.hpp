// All lanes of a pool: three logs each.
#pragma once

#include "inspect/log.hpp"

namespace nearfar::inspect {

struct LogCounts {
  std::uint64_t used = 0;    ///< logs that hold entries, of an unfinished operation or torn
  std::uint64_t pending = 0; ///< logs that recovery would apply
  std::uint64_t entries = 0; ///< of the pending ones
  std::uint64_t extensions = 0;
};

struct Lanes {
  LogCounts internal, external, undo;
  Extensions extensions; ///< where parts of logs lie in the heap
  bool replayed = true;  ///< false: snapshots too large to be replayed here

  std::uint64_t pending() const { return internal.pending + external.pending + undo.pending; }
};

/// Reads all lanes and replays them into `patched` as recovery would: redo logs lane by lane, then
/// undo logs. Requires a usable descriptor.
Lanes read_lanes(const PoolView& view, const Descriptor& descriptor, PatchedView& patched,
                 Findings& findings);

} // namespace nearfar::inspect
