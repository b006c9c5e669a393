// The tier of an entry point's call: the default tier, or the plan's decision for the call site.
//
// Thread safety  any thread.
#pragma once

#include <cstddef>

#include "alloc/allocator.hpp"
#include "base/call_site.hpp"

namespace nearfar::alloc {

/// Calls allocate_in(tier) with the tier that the plan decides, and charges the block to the plan.
template <class AllocateIn>
[[gnu::noinline]] void* place_by_plan(std::size_t size, CallSite site,
                                      const AllocateIn& allocate_in) {
  Allocator& allocator = process_allocator;
  const Decision decision = decide(allocator, size, site);
  void* block = allocate_in(static_cast<unsigned>(decision.tier));
  commit_decision(allocator, decision, block);
  return block;
}

/// Calls allocate_in(tier) with the tier of a call.
template <class AllocateIn>
[[gnu::always_inline]] inline void* place(std::size_t size, CallSite site,
                                          const AllocateIn& allocate_in) {
  const Settings& settings = process_allocator.settings;
  if (!settings.has_plan) [[likely]]
    return allocate_in(static_cast<unsigned>(settings.default_tier));
  return place_by_plan(size, site, allocate_in);
}

} // namespace nearfar::alloc
