// What a thread keeps: a stack of free blocks for each small class of each tier, its counters, its
// quarantine and its last error. In near memory.
//
// Invariants  1. this_cache is never null: a thread without a cache of its own has one with empty
//                stacks of no capacity, so that the fast path needs no test.
//             2. A block in a stack has the state `cached`, and is in one stack alone.
// Thread safety  a cache is used by its thread; others read its counters.
#pragma once

#include <atomic>
#include <cstdint>

#include "alloc/slabs.hpp"
#include "alloc/tier_heap.hpp"

namespace nearfar::alloc {

struct Stack {
  std::uint32_t count = 0; ///< written by the owner alone, as one word
  std::uint32_t capacity = 0;
  Slot* slots = nullptr;
  Counter allocations; ///< blocks handed out through this stack
  Counter frees;
  /// `count` as another thread may read it.
  std::uint32_t held() const { return __atomic_load_n(&count, __ATOMIC_RELAXED); }
};

struct TierCache {
  Stack stacks[cached_classes];
};

struct Quarantine;
struct SiteCache;

struct Cache {
  TierCache* tiers[tier_count];
  Cache* next = nullptr; ///< in the list of all, or of those to be used again
  Cache* previous = nullptr;
  Quarantine* quarantine = nullptr;
  int thread = 0;
  char name[16] = "";
  char error[512] = "";
  SiteCache* sites = nullptr; ///< of a plan
  bool inside_plan = false;   ///< looking at the stack, which may allocate
};

extern Cache cache_of_none; ///< of threads that have not allocated yet
extern Cache cache_of_dead; ///< of threads that are ending
extern TierCache empty_stacks;
extern __thread Cache* this_cache __attribute__((tls_model("initial-exec")));

inline bool own_cache() { return this_cache != &cache_of_none && this_cache != &cache_of_dead; }

/// Gives the calling thread a cache, unless it is ending or memory is short, and stacks for a tier
/// that is ready.
void open_cache(unsigned tier);

/// Puts a block into a stack that has room.
inline void push(Stack& stack, Slot slot) {
  slot.state->store(cached, std::memory_order_relaxed);
  const std::uint32_t count = stack.count;
  stack.slots[count] = slot;
  std::atomic_signal_fence(std::memory_order_release); // a fork sees the slot before the count
  stack.count = count + 1;
  stack.frees.add(1);
}

/// Fills a stack from its class. False if the tier is full.
bool refill(TierHeap& tier, Stack& stack, unsigned size_class);
/// Makes room in a full stack: gives the older half back to the class.
void flush_half(TierHeap& tier, Stack& stack, unsigned size_class);
/// In the child of a fork: forgets the free blocks of a tier that is not there.
void drop_stacks(unsigned tier);
/// Gives all of the thread's free blocks of a tier back.
void flush_tier(Cache& cache, unsigned tier);

/// Calls visit(cache) for every thread's cache, under the lock of their list.
template <class Visit>
void for_caches(const Visit& visit);

os::Lock& caches_lock();
Cache* first_cache();

template <class Visit>
void for_caches(const Visit& visit) {
  const os::LockGuard guard(caches_lock());
  for (Cache* cache = first_cache(); cache != nullptr; cache = cache->next)
    visit(*cache);
}

/// Counters of threads that have ended, by tier and class.
struct PastCounts {
  Counter allocations;
  Counter frees;
};
extern PastCounts past_counts[tier_count][cached_classes];
void reset_past_counts(unsigned tier);

void free_sites(SiteCache* sites);

/// Once: has caches closed as their threads end.
void watch_thread_ends();
/// In the child of a fork: takes over what the threads had that are not there.
void close_other_caches();

} // namespace nearfar::alloc
