// Memory that the program maps, and its global variables, placed by the rules of a plan.
//
// The kernel's memory policy of a mapping decides where its pages are allocated; it stays with the
// mapping through mprotect(), growth and moves, but not through MAP_FIXED over it, which makes a
// new mapping. Placed intervals are therefore recorded: a mapping by MAP_FIXED inside one follows
// the same rule, and its pages are sampled before it is unmapped.
//
// Errors         none are returned: a policy that the kernel refuses is reported once on standard
//                error, and counted.
// errno          is preserved.
// Stack          below 1 KiB, as a handler on a small signal stack may map memory, unless call
//                sites are compared by unwind tables, or one is called for the first time.
// Thread safety  start() by one thread; the others from any thread and from signal handlers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "alloc/lock_order.hpp"
#include "alloc/mapping_rules.hpp"
#include "alloc/mapping_table.hpp"
#include "alloc/tier_options.hpp"
#include "alloc/window.hpp"
#include "os/address_space.hpp"
#include "os/lock.hpp"
#include "os/unprepared_child.hpp"

namespace nearfar::alloc {

class Allocator;

/// A call of mremap(), and what performs it.
struct ResizeCall {
  std::uintptr_t old_begin = 0;
  std::size_t old_bytes = 0;
  std::size_t bytes = 0;
  int flags = 0;
  bool keeps_old = false; ///< the old range stays mapped
  void* target = nullptr;
  void* (*perform)(void* old, std::size_t old_bytes, std::size_t bytes, int flags,
                   void* target) = nullptr;
};

class PlacedMappings {
public:
  constexpr PlacedMappings() = default;
  PlacedMappings(const PlacedMappings&) = delete;
  PlacedMappings& operator=(const PlacedMappings&) = delete;

  /// Places global variables of loaded objects and the brk heap, and mappings from now on.
  void start(Allocator& allocator) NEARFAR_EXCLUDES(lock);
  /// Whether mappings of the program are to be placed; the functions below are not called
  /// otherwise. In a child that no fork handler prepared, another thread may have held the lock:
  /// the child maps memory as without a plan.
  bool active() const {
    return active_.load(std::memory_order_relaxed) && !os::is_unprepared_child();
  }
  const MappingRules& rules() const { return *rules_; }

  /// The program has mapped `own`. `fixed`: it may replace a part of an earlier mapping. Parts are
  /// multiples of `page_bytes`.
  void add(const MappingOrigin& own, bool fixed, std::size_t page_bytes) NEARFAR_EXCLUDES(lock);
  /// The program is about to unmap a range.
  void remove(std::uintptr_t begin, std::size_t bytes) NEARFAR_EXCLUDES(lock);
  /// Resizes a mapping; `own` has the call site. Returns the result of the call.
  void* resize(const ResizeCall& call, MappingOrigin& own) NEARFAR_EXCLUDES(lock);
  /// The brk heap has grown to `end`.
  void grow_heap(std::uintptr_t end) NEARFAR_EXCLUDES(lock);

  /// Samples pages of all intervals.
  void sample() NEARFAR_EXCLUDES(lock);

  os::Lock lock NEARFAR_LOCK_LEVEL(mappings);

private:
  /// The pages of an area before it is placed.
  enum class Pages : std::uint8_t {
    may_be_present, ///< a new mapping, which may be populated
    present,        ///< perhaps with the policy of another tier
    in_tier,        ///< where they are to be
    grown,          ///< new bytes behind a mapping, with its policy
  };

  void update_frames(const MappingOrigin& own);
  bool is_known(const MappingOrigin& own) NEARFAR_REQUIRES(lock);
  void find_frames();
  void place(const MappingOrigin& own, const MappingOrigin* outer, os::Area area,
             std::size_t page_bytes, Pages pages) NEARFAR_REQUIRES(lock);
  bool set_policy(const MappingRule& rule, os::Area area, Pages pages) NEARFAR_REQUIRES(lock);
  void place_part(MappingRule& rule, SharedOrigin* shared, os::Area area, Pages pages)
      NEARFAR_REQUIRES(lock);
  void copy_policies();
  void record(MappingRule* rule, SharedOrigin* shared, os::Area area) NEARFAR_REQUIRES(lock);
  static void count_removed(const MappedInterval& removed);
  void sample(os::Area area, std::size_t most) NEARFAR_REQUIRES(lock);
  void forget(os::Area area) NEARFAR_REQUIRES(lock);
  void* resize_parts(const ResizeCall& call) NEARFAR_REQUIRES(lock);
  void* move_parts(const ResizeCall& call, const MappedInterval* first, const MappedInterval* last,
                   std::size_t growth) NEARFAR_REQUIRES(lock);
  void follow(const ResizeCall& call, std::uintptr_t begin, SharedOrigin& shared)
      NEARFAR_REQUIRES(lock);
  SharedOrigin* find_outer(const MappingOrigin& own) NEARFAR_REQUIRES(lock);
  const MappingRule* rule_of_site(const MappingOrigin& own) const NEARFAR_REQUIRES(lock);
  void place_globals();

  Allocator* allocator_ = nullptr;
  MappingRules* rules_ = nullptr;
  /// Of the tiers, for mappings. Copied, because a handler that maps memory may have interrupted a
  /// thread that holds the lock of a tier.
  NodePolicy policies_[tier_count];
  std::atomic<bool> active_{false};
  os::Area* objects_ NEARFAR_GUARDED_BY(lock) = nullptr; ///< whose frames were found
  std::size_t object_count_ NEARFAR_GUARDED_BY(lock) = 0;
  std::atomic<std::uint64_t> seen_chains_[1024] = {}; ///< direct-mapped, 0: empty
  /// No interval is outside of these. From start() on.
  std::atomic<std::uintptr_t> lowest_{0}, highest_{0};
  std::uintptr_t heap_begin_ = 0; ///< page of the first byte by brk(), 0: unknown
  std::uintptr_t heap_end_ NEARFAR_GUARDED_BY(lock) = 0;
  MappingTable table_ NEARFAR_GUARDED_BY(lock);
  bool refused_ NEARFAR_GUARDED_BY(lock) = false;
};

} // namespace nearfar::alloc
