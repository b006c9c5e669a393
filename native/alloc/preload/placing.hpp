// Where malloc() and its kin allocate: the default tier, or what the plan says of the call site.
#pragma once

#include <cstddef>

#include "alloc/heap.hpp"
#include "alloc/plan.hpp"

namespace nearfar::alloc {

/// Calls allocate_in(tier) with the tier of a call; what it returns is settled with the plan.
template <class AllocateIn>
[[gnu::always_inline]] inline void* place(std::size_t size, const void* return_address,
                                          const void* frame, const AllocateIn& allocate_in) {
  if (!settings.planned) [[likely]]
    return allocate_in(static_cast<unsigned>(settings.default_tier));
  const Decision decision = decide(size, return_address, frame);
  void* block = allocate_in(static_cast<unsigned>(decision.tier));
  settle(decision, block);
  return block;
}

} // namespace nearfar::alloc

/// The call site of the function that this is written in.
#define NEARFAR_CALL_SITE __builtin_return_address(0), __builtin_frame_address(0)
