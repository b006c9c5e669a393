// The order of the locks of libhmalloc, outermost first. A thread that holds a lock acquires only
// locks of later levels. Fork acquires all locks in this order (fork_locks.cpp).
//
//   level          lock                             held while
//   configuration  Allocator::configuration_lock    the environment is read
//   tiers          Allocator::tiers_lock            a tier is opened; TierState changes under it
//   variables      PlacedVariables::lock            variables are moved to a tier
//   purge          Decay::purge_lock                memory is returned to the system
//   caches         ThreadCaches::lock               the list of threads' caches is read or changed
//   slabs          SlabClass::lock                  slabs of a class change; one class at a time
//   runs           RunAllocator::lock               runs of a tier change; one tier at a time
//   metadata       metadata_lock()                  metadata is allocated or freed
//   window         Window::lock                     the window is opened, once
//
// The first three are held with signals blocked, so that no signal handler that forks interrupts
// their holder. Data guarded by a lock is consistent whenever its holder acquires another one.
//
// Checked by      clang -Wthread-safety-beta (preset `clang`): each lock is declared with
//                 NEARFAR_LOCK_LEVEL(its level, the next level).
#pragma once

#include "base/thread_annotations.hpp"

namespace nearfar::alloc {

/// The start of a level. Has no storage: only annotations name it.
struct NEARFAR_CAPABILITY("lock level") LockLevel {};

namespace lock_level {
extern LockLevel configuration;
extern LockLevel tiers NEARFAR_ACQUIRED_AFTER(configuration);
extern LockLevel variables NEARFAR_ACQUIRED_AFTER(tiers);
extern LockLevel purge NEARFAR_ACQUIRED_AFTER(variables);
extern LockLevel caches NEARFAR_ACQUIRED_AFTER(purge);
extern LockLevel slabs NEARFAR_ACQUIRED_AFTER(caches);
extern LockLevel runs NEARFAR_ACQUIRED_AFTER(slabs);
extern LockLevel metadata NEARFAR_ACQUIRED_AFTER(runs);
extern LockLevel window NEARFAR_ACQUIRED_AFTER(metadata);
extern LockLevel end NEARFAR_ACQUIRED_AFTER(window);
} // namespace lock_level

} // namespace nearfar::alloc

#define NEARFAR_LOCK_LEVEL(level, next_level)                                                      \
  NEARFAR_ACQUIRED_AFTER(::nearfar::alloc::lock_level::level)                                      \
  NEARFAR_ACQUIRED_BEFORE(::nearfar::alloc::lock_level::next_level)
