// Caches of threads: a stack of free blocks for each small class of each tier, with counters, a
// quarantine and the last error. In near memory.
//
// Only blocks of process_allocator are cached. Other allocators serve each block from its class.
//
// A cache owns slabs. Blocks that its thread frees are kept in the stack of their class if the cache
// owns their slab, and are allocated again; others are kept at the other end of the stack until they
// are returned to their slabs. When a thread exits, the next thread that starts gets its cache.
//
// Invariants  1. this_thread_cache is never null. A thread without a cache points to one of two
//                shared caches whose stacks have capacity 0, so the fast path needs no null check.
//             2. A block in a stack has the state `cached`, and is in only one stack.
// Thread safety  a cache is used by its thread; other threads read its counters.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "alloc/lock_order.hpp"
#include "alloc/slabs.hpp"
#include "os/lock.hpp"

namespace nearfar::alloc {

/// An array of blocks: at its start those that the thread allocates next, at its end those that it
/// returns to slabs that it does not own.
///
/// Each member is written by the owner alone, as one word, so that a child forked at any time by
/// another thread finds blocks only where they are.
class BlockStack {
public:
  std::uint32_t count() const { return static_cast<std::uint16_t>(word_); }
  std::uint32_t capacity() const { return bounds_ >> 16; }
  /// Index of the first block to return.
  std::uint32_t limit() const { return static_cast<std::uint16_t>(bounds_); }
  std::uint32_t to_return() const { return capacity() - limit(); }
  bool full() const { return count() >= limit(); }
  BlockRef* blocks() const { return blocks_; }

  /// Removes the last block and marks it live. Returns nullptr if the stack is empty.
  [[gnu::always_inline]] std::byte* pop() {
    const std::uint64_t word = word_;
    const auto count = static_cast<std::uint16_t>(word);
    if (count == 0) [[unlikely]]
      return nullptr;
    const BlockRef ref = blocks_[count - 1];
    store(word_, word + one_allocation - 1);
    ref.state->store(live, std::memory_order_relaxed);
    if (ref.block == nullptr) __builtin_unreachable(); // the caller's check costs nothing
    return ref.block;
  }
  /// Adds a freed block. Returns false if the stack is full.
  [[gnu::always_inline]] bool push(BlockRef ref) {
    const std::uint64_t word = word_; // read once: a store to a state may alias it
    const std::uint32_t count = static_cast<std::uint16_t>(word);
    if (count >= limit()) [[unlikely]]
      return false;
    BlockRef& to = blocks_[count];
    to.block = ref.block;
    to.state = ref.state;
    ref.state->store(cached, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_release); // a fork sees the block before the count
    store(word_, word + 1);
    return true;
  }
  /// The same for a block of a slab that the thread does not own.
  bool push_to_return(BlockRef ref) {
    if (full()) return false;
    ref.state->store(cached, std::memory_order_relaxed);
    blocks_[limit() - 1] = ref;
    std::atomic_signal_fence(std::memory_order_release);
    store(bounds_, bounds_ - 1);
    base_.add(std::uint64_t{0} - 1); // one more free
    return true;
  }

  /// Adds blocks that the caller has stored behind the last one.
  void add(std::uint32_t blocks) {
    base_.add(
        blocks); // first: otherwise another thread could read fewer live blocks than there are
    std::atomic_signal_fence(std::memory_order_release);
    store(word_, word_ + blocks);
  }
  /// Removes the last `count` blocks. Their contents stay until blocks are added.
  void drop(std::uint32_t count) {
    store(word_, word_ - count);
    std::atomic_signal_fence(std::memory_order_release);
    base_.add(std::uint64_t{0} - count);
  }
  void drop_returned() { store(bounds_, bounds(capacity())); }
  /// After drop(count): adds blocks [from, count) again, moved to the start.
  void add_from(std::uint32_t from, std::uint32_t count);

  /// Makes the array larger, up to the maximum of the class, if it was used often for its size: a
  /// thread that ends soon keeps small ones. No block is to be returned.
  void grow(unsigned size_class);
  /// Sets the capacity to 0. The stack is empty.
  void close() { store(bounds_, std::uint32_t{0}); }

  std::uint64_t allocations() const { return allocations_of(load(word_)); }
  /// Number of blocks freed: may be too small, never too large, while the thread changes the stack.
  std::uint64_t frees() const;
  /// Blocks in it, as read by another thread.
  std::uint32_t shared_count() const {
    const std::uint32_t now = load(bounds_);
    return static_cast<std::uint16_t>(load(word_)) + (now >> 16) - static_cast<std::uint16_t>(now);
  }
  /// Starts at 0 again. The stack may have blocks.
  void reset_counters() {
    store(word_, std::uint64_t{count()});
    base_.reset();
    base_.add(count());
  }

private:
  /// Above the count: 48 bits for the number of blocks allocated, which then wraps.
  static constexpr std::uint64_t one_allocation = 1 << 16;
  static std::uint64_t allocations_of(std::uint64_t word) { return word >> 16; }
  /// Other threads read the members that are stored and loaded with these.
  template <class Word>
  static Word load(const Word& word) {
    return __atomic_load_n(&word, __ATOMIC_RELAXED);
  }
  template <class Word>
  static void store(Word& word, Word value) {
    __atomic_store_n(&word, value, __ATOMIC_RELAXED);
  }
  static std::uint32_t bounds(std::uint32_t capacity) { return capacity << 16 | capacity; }

  std::uint64_t word_ = 0;
  BlockRef* blocks_ = nullptr;
  std::uint32_t bounds_ = 0; ///< capacity, and below it limit()
  Counter base_;             ///< count() + allocations() - frees()
};

struct Quarantine;

struct TierStacks {
  BlockStack stacks[cached_classes];
  SlabList owned[cached_classes];
  std::uint16_t owner = no_owner; ///< number of the owner of the slabs in `owned`
  /// `owner` if release() may push blocks of these slabs without further checks, else
  /// no_fast_owner.
  std::uint16_t fast_owner = no_fast_owner;
  bool caches = false;              ///< blocks are kept in stacks
  Quarantine* quarantine = nullptr; ///< of the thread, for blocks of slabs of `owner`

  static constexpr std::uint16_t no_fast_owner = last_owner + 1; ///< owns no slab
};

struct SiteCache;

struct ThreadCache {
  TierStacks* tiers[tier_count];
  ThreadCache* next = nullptr;      ///< in ThreadCaches
  ThreadCache* next_idle = nullptr; ///< in one of its lists of idle caches
  Quarantine* quarantine = nullptr;
  int thread = 0;
  char name[16] = "";
  char error[512] = "";
  SiteCache* sites = nullptr;  ///< of a plan
  bool in_plan = false;        ///< the thread evaluates a plan, which may allocate
  bool idle = false;           ///< no thread has it
  std::uint8_t idle_since = 0; ///< tick

  /// Whether this cache belongs to one thread (not no_thread_cache or exiting_thread_cache).
  bool is_owned() const;
};

extern ThreadCache no_thread_cache;      ///< of threads that have not allocated yet
extern ThreadCache exiting_thread_cache; ///< of threads that are exiting
extern TierStacks empty_stacks;
extern __thread ThreadCache* this_thread_cache __attribute__((tls_model("initial-exec")));
/// The calling thread's stacks for the default tier of malloc(); empty_stacks if it has none yet.
extern __thread TierStacks* home_stacks __attribute__((tls_model("initial-exec")));
/// The stacks of which malloc() may allocate without regard to its call site: home_stacks, or
/// empty_stacks if the allocator follows a plan.
extern __thread TierStacks* unplanned_stacks __attribute__((tls_model("initial-exec")));

inline bool ThreadCache::is_owned() const {
  return this != &no_thread_cache && this != &exiting_thread_cache;
}

/// The caches of all threads, and the counters of threads that have exited.
class ThreadCaches {
public:
  /// The cache of a thread that has exited, or a new one, for the calling thread. Returns nullptr if
  /// the system has no memory.
  ThreadCache* acquire();
  /// Keeps a cache whose thread exits for the next thread, and adds its counters to past_counts().
  /// `warm`: it has blocks in its stacks.
  void retire(ThreadCache* cache, bool warm, std::uint8_t now);
  /// Creates empty stacks with an owner number; the caller puts them into a cache.
  TierStacks* create_stacks();
  /// Number of idle caches that have blocks.
  unsigned warm_count() const { return warm_count_.load(std::memory_order_relaxed); }
  /// Calls empty(cache) for idle caches that have had blocks for a tick or longer, or for all.
  template <class Empty>
  void cool(std::uint8_t now, bool all, const Empty& empty) {
    if (warm_count() == 0) return;
    const os::LockGuard guard(lock_);
    ThreadCache* cache = std::exchange(warm_, nullptr);
    for (ThreadCache* next = nullptr; cache != nullptr; cache = next) {
      next = cache->next_idle;
      const bool due = all || old_enough(cache->idle_since, now);
      if (due) empty(*cache);
      if (due) warm_count_.fetch_sub(1, std::memory_order_relaxed);
      push_idle(due ? cold_ : warm_, cache);
    }
  }

  template <class Visit>
  void for_each(const Visit& visit) {
    const os::LockGuard guard(lock_);
    for_each_locked(visit);
  }
  template <class Visit>
  void for_each_locked(const Visit& visit) NEARFAR_REQUIRES(lock_) {
    for (ThreadCache* cache = head_; cache != nullptr; cache = cache->next)
      visit(*cache);
  }
  /// In the child of a fork: calls empty(cache) for the caches of all threads that only the parent
  /// has.
  template <class Empty>
  void retire_others(const Empty& empty) {
    const os::LockGuard guard(lock_);
    warm_ = cold_ = nullptr;
    warm_count_.store(0, std::memory_order_relaxed);
    for (ThreadCache* cache = head_; cache != nullptr; cache = cache->next) {
      if (cache == this_thread_cache) continue;
      empty(*cache);
      set_idle(cache);
      push_idle(cold_, cache);
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
  ThreadCache* find_idle() NEARFAR_REQUIRES(lock_);
  void set_idle(ThreadCache* cache) NEARFAR_REQUIRES(lock_);
  static void push_idle(ThreadCache*& list, ThreadCache* cache) {
    cache->next_idle = list;
    list = cache;
  }

  os::Lock lock_ NEARFAR_LOCK_LEVEL(caches);
  ThreadCache* head_ NEARFAR_GUARDED_BY(lock_) = nullptr; ///< all, idle ones included
  ThreadCache* warm_ NEARFAR_GUARDED_BY(lock_) = nullptr; ///< idle, with blocks in its stacks
  ThreadCache* cold_ NEARFAR_GUARDED_BY(lock_) = nullptr; ///< idle and empty
  std::atomic<unsigned> warm_count_{0};
  std::uint16_t owners_ NEARFAR_GUARDED_BY(lock_) = 0; ///< numbers given to stacks
  Counts past_counts_[tier_count][cached_classes] = {};
};

void free_site_cache(SiteCache* sites);

} // namespace nearfar::alloc
