// The heap of one tier: its classes, its runs, its accounts; and the table of all tiers.
//
// Thread safety  any thread, once a tier is `ready`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "alloc/slabs.hpp"

namespace nearfar::alloc {

enum class TierState : std::uint8_t { absent, making, ready };

struct TierHeap {
  std::atomic<TierState> state{TierState::absent};
  char name[name_bytes] = "";
  int spill_to = -1; ///< another tier, -1 to fail
  Runs runs;
  SlabClass classes[class_count];
  SharedCounter large_allocations, large_frees, large_allocated_bytes, large_live_bytes;
  SharedCounter spilled, failed, returned_bytes;

  bool ready() const { return state.load(std::memory_order_acquire) == TierState::ready; }
};

extern TierHeap tiers[tier_count];

/// Takes one large block of `spans` spans. nullptr if the tier is full.
std::byte* take_large(TierHeap& tier, std::uint32_t spans, std::uint32_t align_spans, bool& dirty);
/// Gives a large block back that begins at this span.
void give_back_large(TierHeap& tier, std::uint32_t first);
/// Changes a large block in place. False if there is no room behind it.
bool resize_large(TierHeap& tier, std::uint32_t first, std::uint32_t spans);

/// Purges a tier, see SlabClass::purge. Returns bytes given to the system.
std::size_t purge_tier(TierHeap& tier, std::uint8_t now, bool all);
bool has_dirty(const TierHeap& tier);

} // namespace nearfar::alloc
