#include "alloc/cache.hpp"

#include <atomic>
#include <new>
#include <utility>

#include "alloc/decay.hpp"
#include "alloc/metadata.hpp"
#include "alloc/quarantine.hpp"
#include "os/process.hpp"

namespace nearfar::alloc {

constinit TierCache empty_stacks;
constinit Cache cache_of_none{{&empty_stacks, &empty_stacks, &empty_stacks, &empty_stacks,
                               &empty_stacks, &empty_stacks, &empty_stacks, &empty_stacks}};
constinit Cache cache_of_dead{{&empty_stacks, &empty_stacks, &empty_stacks, &empty_stacks,
                               &empty_stacks, &empty_stacks, &empty_stacks, &empty_stacks}};
constinit __thread Cache* this_cache = &cache_of_none;
constinit PastCounts past_counts[tier_count][cached_classes] = {};

namespace {

constinit os::Lock list_lock;
constinit Cache* list = nullptr;

constexpr std::size_t slots_in_all = [] {
  std::size_t slots = 0;
  for (unsigned c = 0; c < cached_classes; ++c)
    slots += class_infos[c].cached;
  return slots;
}();
constexpr std::size_t stacks_bytes = sizeof(TierCache) + slots_in_all * sizeof(Slot);

TierCache* make_stacks() {
  void* memory = take_metadata(stacks_bytes);
  if (memory == nullptr) return nullptr;
  auto* stacks = new (memory) TierCache;
  auto* slots = reinterpret_cast<Slot*>(stacks + 1);
  for (unsigned c = 0; c < cached_classes; ++c) {
    stacks->stacks[c].capacity = class_infos[c].cached;
    stacks->stacks[c].slots = slots;
    slots += class_infos[c].cached;
  }
  return stacks;
}

Cache* make_cache() {
  void* memory = take_metadata(sizeof(Cache));
  if (memory == nullptr) return nullptr;
  auto* cache = new (memory) Cache{};
  for (TierCache*& stacks : cache->tiers)
    stacks = &empty_stacks;
  cache->thread = os::thread_number();
  os::thread_name(cache->name);
  const os::LockGuard guard(list_lock);
  cache->next = list;
  if (list != nullptr) list->previous = cache;
  list = cache;
  return cache;
}

void keep_counts(Cache& cache) {
  for (unsigned t = 0; t < tier_count; ++t)
    for (unsigned c = 0; c < cached_classes && cache.tiers[t] != &empty_stacks; ++c) {
      past_counts[t][c].allocations.add(cache.tiers[t]->stacks[c].allocations.get());
      past_counts[t][c].frees.add(cache.tiers[t]->stacks[c].frees.get());
    }
}

/// Frees what a cache holds and the cache itself. The list is locked by who calls.
void unlist_and_free(Cache* cache) {
  keep_counts(*cache);
  (cache->previous != nullptr ? cache->previous->next : list) = cache->next;
  if (cache->next != nullptr) cache->next->previous = cache->previous;
  for (TierCache* stacks : cache->tiers)
    if (stacks != &empty_stacks) return_metadata(stacks, stacks_bytes);
  free_quarantine(cache->quarantine);
  free_sites(cache->sites);
  return_metadata(cache, sizeof(Cache));
}

void close_cache(void* value) {
  auto* cache = static_cast<Cache*>(value);
  this_cache = &cache_of_dead; // later destructors may still allocate and free
  empty_quarantine(*cache);
  for (unsigned t = 0; t < tier_count; ++t)
    flush_tier(*cache, t);
  const os::LockGuard guard(list_lock);
  unlist_and_free(cache);
}

} // namespace

os::Lock& caches_lock() { return list_lock; }
Cache* first_cache() { return list; }
void watch_thread_ends() { os::at_thread_exit(close_cache); }

void open_cache(unsigned tier) {
  if (this_cache == &cache_of_dead || !tiers[tier].ready()) return;
  if (this_cache == &cache_of_none) {
    Cache* made = make_cache();
    if (made == nullptr) return;
    this_cache = made; // before libc is told, for telling it may allocate
    os::set_thread_value(made);
  }
  if (this_cache->tiers[tier] != &empty_stacks) return;
  if (TierCache* stacks = make_stacks(); stacks != nullptr) this_cache->tiers[tier] = stacks;
}

void reset_past_counts(unsigned tier) {
  for (PastCounts& counts : past_counts[tier]) {
    counts.allocations.reset();
    counts.frees.reset();
  }
}

/// The stacks are not given back: a fork in a signal handler may have interrupted a use of them.
void drop_stacks(unsigned tier) {
  if (own_cache()) forget_quarantined(*this_cache, tier);
  this_cache->tiers[tier] = &empty_stacks;
}

bool refill(TierHeap& tier, Stack& stack, unsigned size_class) {
  const std::uint32_t batch = stack.capacity / 2;
  bool fresh = false;
  stack.count =
      tier.classes[size_class].take(tier.runs, size_class, stack.slots, batch, cached, fresh);
  return stack.count > 0;
}

void flush_half(TierHeap& tier, Stack& stack, unsigned size_class) {
  const std::uint32_t count = (stack.count + 1) / 2;
  const std::uint32_t rest = stack.count - count;
  stack.count = 0; // a child forked meanwhile must not give these blocks back again
  tier.classes[size_class].give_back(stack.slots, count, current_tick());
  for (std::uint32_t i = 0; i < rest; ++i)
    stack.slots[i] = stack.slots[count + i];
  std::atomic_signal_fence(std::memory_order_release);
  stack.count = rest;
}

void flush_tier(Cache& cache, unsigned tier) {
  if (cache.tiers[tier] == &empty_stacks) return;
  for (unsigned c = 0; c < cached_classes; ++c) {
    Stack& stack = cache.tiers[tier]->stacks[c];
    const std::uint32_t count = std::exchange(stack.count, 0); // first, as in flush_half()
    if (count > 0) tiers[tier].classes[c].give_back(stack.slots, count, current_tick());
  }
}

void close_other_caches() {
  const os::LockGuard guard(list_lock);
  for (Cache* cache = list; cache != nullptr;) {
    Cache* next = cache->next;
    if (cache != this_cache) {
      forget_quarantine(*cache);
      for (unsigned t = 0; t < tier_count; ++t)
        flush_tier(*cache, t);
      unlist_and_free(cache);
    }
    cache = next;
  }
}

} // namespace nearfar::alloc
