// The address window of an allocator's tiers, and its span table, which describes the contents of
// each span.
//
// Invariants  1. Tier t covers 2^shift bytes from base + (t << shift).
//             2. The entry of a span has the kind `slab` or `arena_slab` exactly while a slab (of
//                an arena) covers it, `large` while it is the first span of a large block,
//                free_head and free_tail at the two ends of a free run, and `none` everywhere else:
//                inside free runs and large blocks, in guards of slabs, in detached runs, and from
//                the frontier on.
// Thread safety  open() from any thread. The entries of a free run are written under
//                RunAllocator::lock; the entries of an allocated run by its owner: the slab's class
//                under its lock, or the thread that owns the large block. Readers need no lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "alloc/lock_order.hpp"
#include "alloc/size_classes.hpp"
#include "os/lock.hpp"

namespace nearfar::alloc {

inline constexpr unsigned tier_count = 8;
/// Owners of slabs. Their numbers differ from all arenas and budgets in Span::detail.
inline constexpr std::uint16_t no_owner = 0, first_owner = 0x8000, last_owner = 0xfffe;

enum class SpanKind : std::uint8_t { none, slab, large, free_head, free_tail, arena_slab };

/// 16 bytes per span: 1/4096 of a tier's size, and only for the part that was used.
struct Span {
  std::atomic<std::uint64_t> word; ///< slab: address of its states; free_head: next, previous
  std::atomic<std::uint32_t>
      extent; ///< slab: first span; large, free_head: length; free_tail: the run's first span
  std::atomic<std::uint8_t> kind_value;
  std::atomic<std::uint8_t> size_class;
  /// slab: number of the owner, or no_owner. Others: 1 + number of the arena, or 0, and in the
  /// upper byte 1 + number of the budget that a large block is charged to, or 0.
  std::atomic<std::uint16_t> detail;

  SpanKind kind(std::memory_order order = std::memory_order_relaxed) const {
    return static_cast<SpanKind>(kind_value.load(order));
  }
  void set_kind(SpanKind kind, std::memory_order order = std::memory_order_relaxed) {
    kind_value.store(static_cast<std::uint8_t>(kind), order);
  }
  std::uint16_t owner() const { return detail.load(std::memory_order_relaxed); }
  std::uint8_t arena() const {
    return kind() == SpanKind::slab ? 0 : static_cast<std::uint8_t>(owner());
  }
  /// Of a large block.
  std::uint8_t budget() const { return static_cast<std::uint8_t>(owner() >> 8); }
  void set_arena_and_budget(std::uint8_t arena, std::uint8_t budget) {
    detail.store(static_cast<std::uint16_t>(budget << 8 | arena), std::memory_order_relaxed);
  }
};
static_assert(sizeof(Span) == 16);

class Window {
public:
  std::uintptr_t base = 0;  ///< 0 until open
  std::uintptr_t bytes = 0; ///< of all tiers
  unsigned shift = 0;
  bool reserved = false; ///< the whole window is mapped; otherwise spans are mapped when needed
  Span* spans = nullptr;

  /// Opens the window once, as large as the process's limits allow. Returns false if it has no
  /// address space for the smallest window.
  bool open();
  /// Opens a reserved window of 2^shift bytes per tier.
  bool open_reserved(unsigned shift_per_tier);
  /// Unmaps a reserved window with everything in it.
  void close();

  std::size_t spans_per_tier() const { return std::size_t{1} << (shift - span_shift); }
  std::byte* span_address(std::uint32_t span) const {
    return reinterpret_cast<std::byte*>(base + (std::uintptr_t{span} << span_shift));
  }
  std::uintptr_t offset_of(const void* ptr) const {
    return reinterpret_cast<std::uintptr_t>(ptr) - base;
  }
  bool contains(const void* ptr) const { return offset_of(ptr) < bytes; }
  /// The tier, span index and span of an address in the window.
  unsigned tier_of(const void* ptr) const { return static_cast<unsigned>(offset_of(ptr) >> shift); }
  std::uint32_t span_index(const void* ptr) const {
    return static_cast<std::uint32_t>(offset_of(ptr) >> span_shift);
  }
  Span& span_of(const void* ptr) const { return spans[span_index(ptr)]; }

  /// The last span of a large block, which is its guard in a hardened heap, becomes inaccessible
  /// when the block is allocated, and accessible before it is freed.
  void close_guard(std::uint32_t first) const;
  void open_guard(std::uint32_t first) const;

  os::Lock& lock() NEARFAR_RETURNS_LOCK(lock_) { return lock_; }

private:
  std::byte* last_span(std::uint32_t first) const;
  bool map(unsigned shift_per_tier, bool reserve) NEARFAR_REQUIRES(lock_);
  bool choose() NEARFAR_REQUIRES(lock_);

  os::Lock lock_ NEARFAR_LOCK_LEVEL(window);
  std::atomic<bool> is_open_{false};
};

/// Whether memory last used in tick `last_use` was not used for a whole tick of the decay.
inline bool old_enough(std::uint8_t last_use, std::uint8_t now) {
  return static_cast<std::uint8_t>(now - last_use) >= 2;
}

} // namespace nearfar::alloc
