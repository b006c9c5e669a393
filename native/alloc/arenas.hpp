// Arenas: heaps that the program creates in a tier and destroys with all their blocks
// (hm_heap_create()). Not an arena in the sense of jemalloc.
//
// An arena has size classes of its own, whose slabs are runs of the tier, and large blocks. The
// span table has the arena of each of these spans; blocks of arenas are not kept in stacks of
// threads, so that an arena can be destroyed at once.
//
// Lifetime        an Arena object is never freed: it is reused for the next one that is created.
// Thread safety   any thread; the caller ensures that nothing uses an arena while it is destroyed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "alloc/lock_order.hpp"
#include "alloc/slabs.hpp"
#include "alloc/tier_heap.hpp"
#include "os/lock.hpp"

struct hm_tier_stats;

namespace nearfar::alloc {

struct Arena {
  TierHeap* tier = nullptr; ///< nullptr if destroyed
  bool lost = false;        ///< the tier was removed in this child of a fork
  std::uint8_t number = 0;  ///< in the span table: 1 + its index
  SpanLimit spans;
  SlabClass classes[class_count];
  SharedCounter large_allocations, large_frees, large_allocated_bytes, large_live_bytes, failed;

  SlabSource source() { return {tier->runs, spans, number}; }
  /// As the functions of TierHeap, within the arena's limit.
  std::byte* allocate_large(std::uint32_t count, std::uint32_t align_spans, bool& dirty);
  void free_large(std::uint32_t first, std::uint8_t now);
  bool resize_large(std::uint32_t first, std::uint32_t count, std::uint8_t now);
  /// Whether it exists, and its tier too.
  bool usable() const { return tier != nullptr && !lost; }
};

class Arenas {
public:
  static constexpr unsigned max_count = 255;

  /// An empty arena of at most `capacity` bytes, 0 for no limit but the tier's. Returns nullptr if
  /// there are max_count arenas, or the system has no memory for another.
  Arena* create(TierHeap& tier, std::size_t capacity);
  /// Frees the metadata of all arenas, whose tiers are closed.
  void close();
  /// Calls visit(block) for the live blocks of an arena, which no other thread may use meanwhile.
  static void visit_live(const Arena& arena, void (*visit)(void* block));
  /// Frees all blocks of an arena. `guards`: its large blocks have guards.
  void destroy(Arena& arena, std::uint8_t now, bool guards);
  /// As SlabClass::purge(), for all arenas of a tier.
  std::size_t purge(TierHeap& tier, std::uint8_t now, bool all);
  /// In the child of a fork: the arenas of a tier that the child does not get.
  void lose(const TierHeap& tier);

  /// Adds what arenas of a tier allocated in slabs, destroyed ones included.
  void add_slab_statistics(const TierHeap& tier, hm_tier_stats& stats);
  /// Statistics of one arena.
  static void read_stats(const Arena& arena, hm_tier_stats& stats);

  /// `number`: of the span table.
  Arena& numbered(std::uint8_t number) const { return *arenas_[number - 1u]; }
  /// Whether it is an arena that was created, and not destroyed since.
  bool contains(const Arena* arena) const;

  /// Calls visit(arena) for all arenas ever created, destroyed ones included. Without the lock.
  template <class Visit>
  void for_each_existing(const Visit& visit) const {
    for (unsigned i = 0, end = created_.load(std::memory_order_acquire); i < end; ++i)
      visit(*arenas_[i]);
  }

  os::Lock& lock() NEARFAR_RETURNS_LOCK(lock_) { return lock_; }

private:
  Arena* find_unused() NEARFAR_REQUIRES(lock_);

  os::Lock lock_ NEARFAR_LOCK_LEVEL(arenas);
  Arena* arenas_[max_count] = {}; ///< the first created_ ones, which do not change
  std::atomic<unsigned> created_{0};
};

} // namespace nearfar::alloc
