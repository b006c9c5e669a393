// Settings of an allocator. Set before it is used by more than one thread.
#pragma once

#include <cstddef>

namespace nearfar::alloc {

struct Settings {
  std::size_t quarantine_bytes = 0; ///< 0: off
  bool guard_large_blocks = false;  ///< an inaccessible span after each; none after slabs
  bool has_plan = false;            ///< the preloaded malloc() follows the plan
  bool count_rules = false;         ///< count allocations per rule of the plan
  int default_tier = 0;             ///< of the preloaded malloc()
  char stats_file[512] = "";        ///< empty: standard error
};

} // namespace nearfar::alloc
