// Settings of the process, from its environment, and the tiers it asks for.
//
// Thread safety  configure() by anyone; what it sets does not change afterwards.
#pragma once

#include <cstddef>

#include "base/result.hpp"
#include "os/lock.hpp"

namespace nearfar::alloc {

struct Settings {
  std::size_t quarantine_bytes = 0; ///< 0: off
  bool guard = false;       ///< an inaccessible span after each large block; none after slabs
  int default_tier = 0;     ///< of malloc() in libhmalloc-preload.so
  bool planned = false;     ///< malloc() there asks the plan
  bool count_rules = false; ///< NEARFAR_HMALLOC_STATS asks what each rule of the plan placed
};
extern Settings settings;

/// Opens the window and the near tier, once, without calling anything that might allocate. False if
/// this process has no address space for it.
bool open_near();

/// Reads the environment and makes its tiers, once. What makes no sense ends the process.
/// Allocations made while this runs, by this thread, go near.
void configure();

/// Makes a tier. Errors as hm_tier_create() tells them.
Result<int> create_tier(const char* name, const char* specification);
int find_tier(const char* name);
/// Once, for libhmalloc-preload.so: reads NEARFAR_HMALLOC_DEFAULT and NEARFAR_HMALLOC_PLAN. What
/// makes no sense ends the process.
void configure_preload();

/// Held while the environment is read.
os::Lock& configuration_lock();
/// Held while a tier is made.
os::Lock& tiers_lock();

} // namespace nearfar::alloc
