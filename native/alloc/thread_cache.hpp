// Caches of threads: a stack of free blocks for each small class of each tier, with counters, a
// quarantine and the last error. In near memory.
//
// Only blocks of process_allocator are cached. Other allocators serve each block from its class.
//
// Blocks have no owner: the thread that frees a block keeps it in its stack.
//
// Invariants  1. this_thread_cache is never null. A thread without a cache points to one of two
//                shared caches whose stacks have capacity 0, so the fast path needs no null check.
//             2. A block in a stack has the state `cached`, and is in only one stack.
// Thread safety  a cache is used by its thread; other threads read its counters.
#pragma once

#include <atomic>
#include <cstdint>

#include "alloc/lock_order.hpp"
#include "alloc/slabs.hpp"
#include "os/lock.hpp"

namespace nearfar::alloc {

struct BlockStack {
  std::uint32_t count = 0; ///< written by the owner alone, as one word
  std::uint32_t capacity = 0;
  BlockRef* blocks = nullptr;
  Counter allocations; ///< blocks allocated from this stack
  Counter frees;
  /// `count` as read by another thread.
  std::uint32_t shared_count() const { return __atomic_load_n(&count, __ATOMIC_RELAXED); }
};

struct TierStacks {
  BlockStack stacks[cached_classes];
};

struct Quarantine;
struct SiteCache;

struct ThreadCache {
  TierStacks* tiers[tier_count];
  ThreadCache* next = nullptr; ///< in ThreadCaches
  ThreadCache* previous = nullptr;
  Quarantine* quarantine = nullptr;
  int thread = 0;
  char name[16] = "";
  char error[512] = "";
  SiteCache* sites = nullptr; ///< of a plan
  bool in_plan = false;       ///< the thread evaluates a plan, which may allocate

  /// Whether this cache belongs to one thread (not no_thread_cache or exiting_thread_cache).
  bool is_owned() const;
};

extern ThreadCache no_thread_cache;      ///< of threads that have not allocated yet
extern ThreadCache exiting_thread_cache; ///< of threads that are exiting
extern TierStacks empty_stacks;
extern __thread ThreadCache* this_thread_cache __attribute__((tls_model("initial-exec")));

inline bool ThreadCache::is_owned() const {
  return this != &no_thread_cache && this != &exiting_thread_cache;
}

/// Pushes a freed block on a stack that has room.
inline void push(BlockStack& stack, BlockRef block) {
  block.state->store(cached, std::memory_order_relaxed);
  const std::uint32_t count = stack.count;
  stack.blocks[count] = block;
  std::atomic_signal_fence(std::memory_order_release); // a fork sees the block before the count
  stack.count = count + 1;
  stack.frees.add(1);
}

/// The caches of all threads, and the counters of threads that have exited.
class ThreadCaches {
public:
  /// Creates the calling thread's cache. Returns nullptr if the system has no memory.
  ThreadCache* create();
  /// Destroys a cache whose stacks are empty, and adds its counters to past_counts().
  void destroy(ThreadCache* cache);
  static TierStacks* create_stacks();

  template <class Visit>
  void for_each(const Visit& visit) {
    const os::LockGuard guard(lock_);
    for_each_locked(visit);
  }
  template <class Visit>
  void for_each_locked(const Visit& visit) NEARFAR_REQUIRES(lock_) {
    for (ThreadCache *cache = head_, *next = nullptr; cache != nullptr; cache = next) {
      next = cache->next;
      visit(*cache);
    }
  }
  /// Calls visit(cache) for the caches of all threads but this one, and destroys them.
  template <class Visit>
  void destroy_others(const Visit& visit) {
    const os::LockGuard guard(lock_);
    for (ThreadCache *cache = head_, *next = nullptr; cache != nullptr; cache = next) {
      next = cache->next;
      if (cache == this_thread_cache) continue;
      visit(*cache);
      unlist_and_free(cache);
    }
  }

  struct Counts {
    Counter allocations;
    Counter frees;
  };
  /// Of threads that have exited.
  const Counts& past_counts(unsigned tier, unsigned size_class) const {
    return past_counts_[tier][size_class];
  }
  void reset_past_counts(unsigned tier);

  os::Lock& lock() NEARFAR_RETURNS_LOCK(lock_) { return lock_; }

private:
  void unlist_and_free(ThreadCache* cache) NEARFAR_REQUIRES(lock_);

  os::Lock lock_ NEARFAR_LOCK_LEVEL(caches);
  ThreadCache* head_ NEARFAR_GUARDED_BY(lock_) = nullptr;
  Counts past_counts_[tier_count][cached_classes] = {};
};

void free_site_cache(SiteCache* sites);

} // namespace nearfar::alloc
