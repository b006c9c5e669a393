#include "alloc/thread_cache.hpp"

#include <algorithm>
#include <new>

#include "alloc/metadata.hpp"
#include "alloc/quarantine.hpp"
#include "os/process.hpp"

namespace nearfar::alloc {

constinit TierStacks empty_stacks;
constinit ThreadCache no_thread_cache{{&empty_stacks, &empty_stacks, &empty_stacks, &empty_stacks,
                                       &empty_stacks, &empty_stacks, &empty_stacks, &empty_stacks}};
constinit ThreadCache exiting_thread_cache{{&empty_stacks, &empty_stacks, &empty_stacks,
                                            &empty_stacks, &empty_stacks, &empty_stacks,
                                            &empty_stacks, &empty_stacks}};
constinit __thread ThreadCache* this_thread_cache = &no_thread_cache;
constinit __thread TierStacks* home_stacks = &empty_stacks;
constinit __thread TierStacks* unplanned_stacks = &empty_stacks;

void BlockStack::add_from(std::uint32_t from, std::uint32_t count) {
  for (std::uint32_t i = from; i < count; ++i)
    blocks_[i - from] = blocks_[i];
  add(count - from);
}

void BlockStack::grow(unsigned size_class) {
  constexpr std::uint32_t first_capacity = 16, uses_before_growth = 8;
  const std::uint32_t most = class_infos[size_class].cached;
  const std::uint32_t before = capacity();
  if (before >= most || std::max(allocations(), frees()) < uses_before_growth * before) return;
  const std::uint32_t wanted = std::min(before == 0 ? first_capacity : 2 * before, most);
  auto* larger = static_cast<BlockRef*>(allocate_metadata(wanted * sizeof(BlockRef)));
  if (larger == nullptr) return;
  std::copy_n(blocks_, count(), larger);
  BlockRef* old = std::exchange(blocks_, larger);
  std::atomic_signal_fence(std::memory_order_release); // a fork sees the array before its size
  store(bounds_, bounds(wanted));
  if (old != nullptr) free_metadata(old, before * sizeof(BlockRef));
}

std::uint64_t BlockStack::frees() const {
  constexpr int tries = 100;
  constexpr unsigned unused_bits = 16; // allocations wrap
  for (int i = 0; i < tries; ++i) {
    const std::uint64_t word = load(word_);
    const std::uint64_t base = base_.get();
    std::atomic_signal_fence(std::memory_order_acquire); // the loads of x86 are in order
    if (load(word_) != word) continue;
    const std::uint64_t freed = static_cast<std::uint16_t>(word) + allocations_of(word) - base;
    return static_cast<std::int64_t>(freed << unused_bits) < 0
               ? 0
               : freed << unused_bits >> unused_bits;
  }
  return 0; // the owner never paused: it is read again later
}

TierStacks* ThreadCaches::create_stacks() {
  void* memory = allocate_metadata(sizeof(TierStacks));
  if (memory == nullptr) return nullptr;
  auto* stacks = new (memory) TierStacks;
  const os::LockGuard guard(lock_);
  if (owners_ < last_owner - first_owner)
    stacks->owner = static_cast<std::uint16_t>(first_owner + owners_++);
  for (SlabList& list : stacks->owned)
    list.owner = stacks->owner;
  stacks->caches = true;
  return stacks;
}

/// Removes an idle cache from its list; one with blocks, if there is one.
ThreadCache* ThreadCaches::find_idle() {
  ThreadCache*& list = warm_ != nullptr ? warm_ : cold_;
  ThreadCache* cache = list;
  if (cache == nullptr) return nullptr;
  if (&list == &warm_) warm_count_.fetch_sub(1, std::memory_order_relaxed);
  list = cache->next_idle;
  cache->idle = false;
  return cache;
}

ThreadCache* ThreadCaches::acquire() {
  const int thread = os::thread_number(); // system calls, thus before the lock
  char name[sizeof ThreadCache::name];
  os::thread_name(name);
  const os::LockGuard guard(lock_);
  ThreadCache* cache = find_idle();
  if (cache == nullptr) {
    void* memory = allocate_metadata(sizeof(ThreadCache));
    if (memory == nullptr) return nullptr;
    cache = new (memory) ThreadCache{};
    for (TierStacks*& stacks : cache->tiers)
      stacks = &empty_stacks;
    cache->next = head_;
    head_ = cache;
  }
  cache->thread = thread;
  std::copy_n(name, sizeof name, cache->name);
  return cache;
}

/// Moves the counters of a cache to past_counts_, and frees what belongs to the thread.
void ThreadCaches::set_idle(ThreadCache* cache) {
  cache->idle = true;
  for (unsigned t = 0; t < tier_count; ++t) {
    if (cache->tiers[t] == &empty_stacks) continue;
    cache->tiers[t]->quarantine = nullptr;
    for (unsigned c = 0; c < cached_classes; ++c) {
      BlockStack& stack = cache->tiers[t]->stacks[c];
      past_counts_[t][c].allocations.add(stack.allocations());
      past_counts_[t][c].frees.add(stack.frees());
      stack.reset_counters();
    }
  }
  free_quarantine(std::exchange(cache->quarantine, nullptr));
  free_site_cache(std::exchange(cache->sites, nullptr));
  cache->error[0] = '\0';
}

void ThreadCaches::retire(ThreadCache* cache, bool warm, std::uint8_t now) {
  const os::LockGuard guard(lock_);
  set_idle(cache);
  cache->idle_since = now;
  if (warm) warm_count_.fetch_add(1, std::memory_order_relaxed);
  push_idle(warm ? warm_ : cold_, cache);
}

void ThreadCaches::reset_past_counts(unsigned tier) {
  for (Counts& counts : past_counts_[tier]) {
    counts.allocations.reset();
    counts.frees.reset();
  }
}

} // namespace nearfar::alloc
