// The tier of an entry point's call: the default tier, or the plan's decision for the call site.
//
// Thread safety  any thread.
#pragma once

#include <cstddef>

#include "alloc/allocator.hpp"
#include "base/call_site.hpp"

namespace nearfar::alloc {

/// Calls allocate_in(tier) with the tier of a call, and charges the block to the plan.
template <class AllocateIn>
[[gnu::always_inline]] inline void* place(std::size_t size, CallSite site,
                                          const AllocateIn& allocate_in) {
  Allocator& allocator = process_allocator;
  if (!allocator.settings.has_plan) [[likely]]
    return allocate_in(static_cast<unsigned>(allocator.settings.default_tier));
  const Decision decision = decide(allocator, size, site);
  void* block = allocate_in(static_cast<unsigned>(decision.tier));
  commit_decision(allocator, decision, block);
  return block;
}

} // namespace nearfar::alloc
