// The order of the locks of libhmalloc, outermost first. A thread that holds a lock acquires only
// locks of later levels. Fork acquires all locks in this order (fork_locks.cpp).
//
//   level          lock                             held while
//   configuration  Allocator::configuration_lock    the environment is read
//   tiers          Allocator::tiers_lock            a tier is opened; TierState changes under it
//   variables      PlacedVariables::lock            variables are moved to a tier
//   mappings       PlacedMappings::lock             mappings of the program are placed or forgotten
//   purge          Decay::purge_lock                memory is returned to the system
//   arenas         Arenas::lock                     an arena is created, purged or destroyed
//   caches         ThreadCaches::lock               the list of threads' caches is read or changed,
//                                                   and caches of ended threads are emptied
//   slabs          SlabClass::lock                  slabs of a class change; one class at a time
//   runs           RunAllocator::lock               runs of a tier change; one tier at a time
//   metadata       metadata_lock()                  metadata is allocated or freed
//   window         Window::lock                     the window is opened, once
//
// Signals are blocked while one of the first four is held, so that a handler cannot fork then.
// Before a thread acquires another lock, the data guarded by the locks that it holds is consistent.
//
// Checked by `make test-clang`, not by `make test`: -Wthread-safety-beta. Each lock is declared with
// NEARFAR_LOCK_LEVEL. To add a lock: add a level here, declare the lock with its level, add it to
// for_each_lock() (fork_locks.cpp) and a pair to checks/lock_order.cpp; run `make test-clang`.
#pragma once

#include "base/thread_annotations.hpp"

namespace nearfar::alloc {

/// The start or the end of a level. Has no storage: only annotations name it.
struct NEARFAR_CAPABILITY("lock level") LockLevel {};

namespace lock_level {
extern LockLevel configuration;
extern LockLevel configuration_end NEARFAR_ACQUIRED_AFTER(configuration);
extern LockLevel tiers NEARFAR_ACQUIRED_AFTER(configuration_end);
extern LockLevel tiers_end NEARFAR_ACQUIRED_AFTER(tiers);
extern LockLevel variables NEARFAR_ACQUIRED_AFTER(tiers_end);
extern LockLevel variables_end NEARFAR_ACQUIRED_AFTER(variables);
extern LockLevel mappings NEARFAR_ACQUIRED_AFTER(variables_end);
extern LockLevel mappings_end NEARFAR_ACQUIRED_AFTER(mappings);
extern LockLevel purge NEARFAR_ACQUIRED_AFTER(mappings_end);
extern LockLevel purge_end NEARFAR_ACQUIRED_AFTER(purge);
extern LockLevel arenas NEARFAR_ACQUIRED_AFTER(purge_end);
extern LockLevel arenas_end NEARFAR_ACQUIRED_AFTER(arenas);
extern LockLevel caches NEARFAR_ACQUIRED_AFTER(arenas_end);
extern LockLevel caches_end NEARFAR_ACQUIRED_AFTER(caches);
extern LockLevel slabs NEARFAR_ACQUIRED_AFTER(caches_end);
extern LockLevel slabs_end NEARFAR_ACQUIRED_AFTER(slabs);
extern LockLevel runs NEARFAR_ACQUIRED_AFTER(slabs_end);
extern LockLevel runs_end NEARFAR_ACQUIRED_AFTER(runs);
extern LockLevel metadata NEARFAR_ACQUIRED_AFTER(runs_end);
extern LockLevel metadata_end NEARFAR_ACQUIRED_AFTER(metadata);
extern LockLevel window NEARFAR_ACQUIRED_AFTER(metadata_end);
extern LockLevel window_end NEARFAR_ACQUIRED_AFTER(window);
} // namespace lock_level

} // namespace nearfar::alloc

#define NEARFAR_LOCK_LEVEL(level)                                                                  \
  NEARFAR_ACQUIRED_AFTER(::nearfar::alloc::lock_level::level)                                      \
  NEARFAR_ACQUIRED_BEFORE(::nearfar::alloc::lock_level::level##_end)
