// The heap of one tier: its classes, its runs, its accounts; and the table of all tiers.
//
// Life of a tier  absent -> making -> ready, all under tiers_lock() (tier_making.hpp). In the child
//                 of a fork a ready tier becomes absent again where the child does not get it:
//                 its blocks stay known as removed, and a later tier in the same slot begins
//                 behind them.
// Thread safety   any thread, once a tier is `ready`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "alloc/slabs.hpp"

namespace nearfar::alloc {

/// `lost`: taken from the child of a fork while a call on it was interrupted; never made again.
enum class TierState : std::uint8_t { absent, making, ready, lost };

struct TierHeap {
  std::atomic<TierState> state{TierState::absent};
  char name[name_bytes] = "";
  int spill_to = -1;               ///< another tier, -1 to fail
  std::uint32_t removed_spans = 0; ///< at the beginning of its slot: of tiers removed by a fork
  Runs runs;
  SlabClass classes[class_count];
  SharedCounter large_allocations, large_frees, large_allocated_bytes, large_live_bytes;
  SharedCounter spilled, failed, returned_bytes;

  /// Clears accounts and lists of slabs, so that another tier can use the slot.
  void reset();
  bool ready() const { return state.load(std::memory_order_acquire) == TierState::ready; }
};

extern TierHeap tiers[tier_count];

/// Whether a span belonged to a tier that this child of a fork does not have.
inline bool is_removed(std::uint32_t span) {
  const unsigned bits = geometry.shift - span_shift;
  return (span & ((1u << bits) - 1)) < tiers[span >> bits].removed_spans;
}

/// Takes one large block of `spans` spans. nullptr if the tier is full.
std::byte* take_large(TierHeap& tier, std::uint32_t spans, std::uint32_t align_spans, bool& dirty);
/// Gives a large block back that begins at this span.
void give_back_large(TierHeap& tier, std::uint32_t first);
/// Changes a large block in place. False if there is no room behind it.
bool resize_large(TierHeap& tier, std::uint32_t first, std::uint32_t spans);

/// Purges a tier, see SlabClass::purge. Returns bytes given to the system.
std::size_t purge_tier(TierHeap& tier, std::uint8_t now, bool all);

} // namespace nearfar::alloc
