// Settings of an allocator. Set before it is used by more than one thread.
#pragma once

#include <cstddef>

namespace nearfar::alloc {

struct Settings {
  std::size_t quarantine_bytes = 0; ///< 0: off
  bool guard = false;  ///< an inaccessible span behind each large block, and on both sides of slabs
  bool canary = false; ///< bytes behind each block that are checked when it is freed
  bool wipe = false;   ///< freed blocks are cleared, and checked when they leave the quarantine
  bool has_plan = false;    ///< the preloaded malloc() follows the plan
  bool count_rules = false; ///< count allocations per rule of the plan
  int default_tier = 0;     ///< of the preloaded malloc()
  /// Whether blocks are written when they are allocated or freed: threads do not cache them then.
  bool writes_blocks() const { return canary || wipe; }

  char stats_file[512] = ""; ///< empty: standard error
};

} // namespace nearfar::alloc
