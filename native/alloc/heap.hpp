// Allocating and freeing, over all tiers.
//
// The path of a small block: class_of() -> the thread's Stack -> mark it live. Of its free: the
// span of its address -> its class and state -> the thread's Stack. Stacks are refilled from and
// flushed to a SlabClass by halves; slabs and large blocks come from Runs.
//
// Errors         nullptr with errno ENOMEM, ENODEV or EINVAL; report() has the sentence.
// Thread safety  any thread.
#pragma once

#include <cerrno>
#include <cstddef>

#include "alloc/cache.hpp"
#include "alloc/settings.hpp"
#include "alloc/tier_heap.hpp"

namespace nearfar::alloc {

/// Past the fast path: first calls, empty stacks, larger sizes, full tiers. `zeroed` is set where
/// the block is known to be zero.
void* allocate_slowly(unsigned tier, std::size_t size, bool* zeroed);

inline void* allocate(unsigned tier, std::size_t size) {
  if (size <= largest_cached_bytes && tier < tier_count) [[likely]] {
    Stack& stack = this_cache->tiers[tier]->stacks[class_of(size)];
    const std::uint32_t count = stack.count;
    if (count > 0) [[likely]] {
      const Slot slot = stack.slots[count - 1];
      stack.count = count - 1;
      slot.state->store(live, std::memory_order_relaxed);
      stack.allocations.add(1);
      return slot.block;
    }
  }
  return allocate_slowly(tier, size, nullptr);
}

void* allocate_zeroed(unsigned tier, std::size_t count, std::size_t size);
/// `alignment` is a power of two.
void* allocate_aligned(unsigned tier, std::size_t alignment, std::size_t size);

/// Whether an address lies in the window at all.
inline bool is_ours(const void* ptr) { return inside_window(offset_of(ptr)); }

void release_slowly(void* ptr);
/// A live block that was just freed, with quarantine on.
void release_to_quarantine(Slot slot, unsigned size_class);

/// Frees a block of the window; what is no live block ends the process.
inline void release(void* ptr) {
  const std::uintptr_t offset = offset_of(ptr);
  if (!inside_window(offset)) [[unlikely]]
    return release_slowly(ptr);
  const Span& span = geometry.spans[offset >> span_shift];
  if (span.kind.load(std::memory_order_relaxed) != static_cast<std::uint8_t>(SpanKind::slab))
      [[unlikely]]
    return release_slowly(ptr);
  const unsigned size_class = span.size_class.load(std::memory_order_relaxed);
  if (size_class >= cached_classes) return release_slowly(ptr);
  const ClassInfo& info = class_infos[size_class];
  const std::uint64_t in_slab =
      offset - (std::uint64_t{span.extent.load(std::memory_order_relaxed)} << span_shift);
  const std::uint64_t product = in_slab * info.reciprocal;
  constexpr std::uint64_t fraction = (std::uint64_t{1} << reciprocal_shift) - 1;
  auto* state = reinterpret_cast<AtomicState*>(span.word.load(std::memory_order_relaxed)) +
                (product >> reciprocal_shift);
  Stack& stack = this_cache->tiers[offset >> geometry.shift]->stacks[size_class];
  // The fraction of a multiple is below the reciprocal (Lemire, Kaser, Kurz 2019).
  if ((product & fraction) >= info.reciprocal || state->load(std::memory_order_relaxed) != live)
      [[unlikely]]
    return release_slowly(ptr);
  if (settings.quarantine_bytes != 0) [[unlikely]]
    return release_to_quarantine({static_cast<std::byte*>(ptr), state}, size_class);
  if (stack.count >= stack.capacity) [[unlikely]]
    return release_slowly(ptr);
  push(stack, {static_cast<std::byte*>(ptr), state});
}

/// Puts a block in the thread's stack, or back to its class; its state is not looked at.
void release_slot(Slot slot);

/// Bytes at a live block of the window; what is none ends the process, `call` being named.
std::size_t usable_size(const void* ptr, const char* call);

/// Resizes a live block of the window; `tier` is where it shall be.
void* reallocate(unsigned tier, void* ptr, std::size_t size);

/// Bytes that a block of this size has where it is not aligned specially.
inline std::size_t rounded_size(std::size_t size) {
  return size <= largest_class_bytes ? class_infos[class_of(size)].bytes
                                     : spans_for(size) << span_shift;
}

/// Budgets of a plan: a live block may count against one, 1 + its number; 0 for none.
void set_budget(void* block, int budget);
/// Adds to what counts against a budget (plan_matching.cpp); `grown`: by how much the block that
/// was resized is larger than before.
void charge_budget(int budget, std::int64_t bytes, std::int64_t grown);
/// A block of so many bytes that counts against a budget is about to be freed.
void leave_budget(int budget, const void* block, std::size_t bytes);

/// The tier of an address of the window.
inline unsigned tier_of(const void* ptr) {
  return static_cast<unsigned>(offset_of(ptr) >> geometry.shift);
}

} // namespace nearfar::alloc
