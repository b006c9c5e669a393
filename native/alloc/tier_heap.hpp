// The heap of one tier: its memory, its runs and size classes, its counters.
//
// Lifetime        absent -> opening -> ready, under Allocator::tiers_lock. A ready tier that the
//                 child of a fork does not get becomes absent there (`lost` if a call was
//                 interrupted): its blocks can be freed, and a later tier in the slot begins behind
//                 its addresses.
// Memory          an object that was never opened is zero, so that absent tiers of a static
//                 allocator use none: attach() and opening set its constants.
// Thread safety   any thread, once a tier is `ready`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "alloc/slabs.hpp"
#include "base/result.hpp"

namespace nearfar::alloc {

/// `lost`: removed in the child of a fork while a call on it was interrupted; not opened again.
enum class TierState : std::uint8_t { absent, opening, ready, lost };

class TierHeap {
public:
  constexpr TierHeap() = default;
  TierHeap(const TierHeap&) = delete;
  TierHeap& operator=(const TierHeap&) = delete;

  /// Sets the tier's place in a window, before it is opened for the first time.
  void attach(Window& window, unsigned slot) {
    runs.attach(window);
    slot_ = slot;
  }
  /// Opens an absent tier and makes it ready. Failure leaves no mapping, page, memory policy or
  /// descriptor. Errors: no_space, unsupported, not_found, exists, no_permission.
  Status open(const char* name, const TierOptions& options, int spill_to);
  /// Opens the near tier without settings: all of its slot, anonymous. Allocates nothing. Returns
  /// false if the system refuses.
  bool open_default();
  /// Applies options (dram or numa) to the near tier while it is in use.
  Status apply(const TierOptions& options);
  /// Unmaps the tier. Its blocks are gone.
  void close();
  /// In the child of a fork: unmaps a tier that the child does not get. Its blocks can still be
  /// freed, and its addresses are never allocated again. `interrupted`: a call holds its locks.
  void remove_in_child(bool interrupted);

  bool ready() const { return state_.load(std::memory_order_acquire) == TierState::ready; }
  /// Whether a memory policy can place other mappings in this tier: it is not a file or device.
  bool is_memory() const { return runs.backing().anonymous; }
  bool absent() const { return state_.load(std::memory_order_relaxed) == TierState::absent; }
  const char* name() const { return name_; }
  /// The tier that serves allocations when this one is full, -1 for none.
  int spill_to() const { return spill_to_; }
  void set_spill_to(int tier) { spill_to_ = tier; }

  /// The first address of the tier, the span there, and the most bytes that it can have.
  std::byte* base() const { return window().span_address(first_span()); }
  std::uint32_t first_span() const {
    return slot_ * static_cast<std::uint32_t>(window().spans_per_tier()) + removed_spans_;
  }
  std::size_t slot_bytes() const {
    return (window().spans_per_tier() - removed_spans_) << span_shift;
  }
  /// Spans at the start of the slot that belonged to tiers removed in this child of a fork.
  std::uint32_t removed_spans() const { return removed_spans_; }
  Window& window() const { return runs.window(); }

  /// Allocates a large block, for an arena if its number is given. Returns nullptr if the tier is
  /// full.
  std::byte* allocate_large(std::uint32_t spans, std::uint32_t align_spans, bool& dirty,
                            std::uint8_t arena = 0);
  /// Frees the large block that begins at this span.
  void free_large(std::uint32_t first, std::uint8_t now);
  /// Resizes a large block in place. Returns false if the spans behind it are in use.
  bool resize_large(std::uint32_t first, std::uint32_t spans, std::uint8_t now);
  /// As SlabClass::purge(), for the whole tier.
  std::size_t purge(std::uint8_t now, bool all);

  RunAllocator runs;
  SlabClass classes[class_count];
  SharedCounter large_allocations, large_frees, large_allocated_bytes, large_live_bytes;
  SharedCounter spilled, failed, returned_bytes;
  /// Blocks of slabs of arenas that were destroyed, and their bytes.
  SharedCounter past_arena_blocks, past_arena_bytes;

private:
  class Opening;

  void reset();
  Status open_memory(const TierOptions& options);
  void forget_removed_blocks();

  std::atomic<TierState> state_{TierState::absent};
  char name_[tier_name_bytes] = "";
  int spill_to_ = 0; ///< of a ready tier
  unsigned slot_ = 0;
  std::uint32_t removed_spans_ = 0;
};

} // namespace nearfar::alloc
