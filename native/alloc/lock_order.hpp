// The order of the locks of this library, outermost first. A thread that holds a lock takes only
// locks below it. This table is the only list: fork takes the locks in this order.
//
//   configuration_lock()   settings.hpp    while the environment is read
//   tiers_lock()           settings.hpp    while a tier is made; TierState changes under it
//   variables_lock()       variables.hpp   the ranges of variables in tiers
//   purge_lock()           decay.hpp       while memory is given back
//   caches_lock()          cache.hpp       the list of threads' caches
//   SlabClass::lock()      slabs.hpp       one at a time
//   Runs::lock()           runs.hpp        one at a time
//   metadata_lock()        metadata.hpp
//   window_lock()          window.hpp      once
//
// The first three are held with signals blocked: a signal handler that forks never interrupts
// their holder. Where another lock is taken, the data of those already held is consistent.
#pragma once

#include "alloc/cache.hpp"
#include "alloc/decay.hpp"
#include "alloc/metadata.hpp"
#include "alloc/settings.hpp"
#include "alloc/variables.hpp"

namespace nearfar::alloc {

/// Calls visit(lock) for every lock, outermost first. Between two calls with tiers_lock() held, the
/// locks are the same.
template <class Visit>
void for_each_lock(const Visit& visit) {
  visit(configuration_lock());
  visit(tiers_lock());
  visit(variables_lock());
  visit(purge_lock());
  visit(caches_lock());
  for (TierHeap& tier : tiers)
    if (tier.ready())
      for (SlabClass& c : tier.classes)
        visit(c.lock());
  for (TierHeap& tier : tiers)
    if (tier.ready()) visit(tier.runs.lock());
  visit(metadata_lock());
  visit(window_lock());
}

} // namespace nearfar::alloc
