#include "alloc/thread_cache.hpp"

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

namespace {

constexpr std::size_t blocks_in_all_stacks = [] {
  std::size_t blocks = 0;
  for (unsigned c = 0; c < cached_classes; ++c)
    blocks += class_infos[c].cached;
  return blocks;
}();
constexpr std::size_t stacks_bytes = sizeof(TierStacks) + blocks_in_all_stacks * sizeof(BlockRef);

} // namespace

TierStacks* ThreadCaches::create_stacks() {
  void* memory = allocate_metadata(stacks_bytes);
  if (memory == nullptr) return nullptr;
  auto* stacks = new (memory) TierStacks;
  auto* blocks = reinterpret_cast<BlockRef*>(stacks + 1);
  for (unsigned c = 0; c < cached_classes; ++c) {
    stacks->stacks[c].capacity = class_infos[c].cached;
    stacks->stacks[c].blocks = blocks;
    blocks += class_infos[c].cached;
  }
  return stacks;
}

ThreadCache* ThreadCaches::create() {
  void* memory = allocate_metadata(sizeof(ThreadCache));
  if (memory == nullptr) return nullptr;
  auto* cache = new (memory) ThreadCache{};
  for (TierStacks*& stacks : cache->tiers)
    stacks = &empty_stacks;
  cache->thread = os::thread_number();
  os::thread_name(cache->name);
  const os::LockGuard guard(lock_);
  cache->next = head_;
  if (head_ != nullptr) head_->previous = cache;
  head_ = cache;
  return cache;
}

void ThreadCaches::unlist_and_free(ThreadCache* cache) {
  (cache->previous != nullptr ? cache->previous->next : head_) = cache->next;
  if (cache->next != nullptr) cache->next->previous = cache->previous;
  for (unsigned t = 0; t < tier_count; ++t) {
    TierStacks* stacks = cache->tiers[t];
    if (stacks == &empty_stacks) continue;
    for (unsigned c = 0; c < cached_classes; ++c) {
      past_counts_[t][c].allocations.add(stacks->stacks[c].allocations.get());
      past_counts_[t][c].frees.add(stacks->stacks[c].frees.get());
    }
    free_metadata(stacks, stacks_bytes);
  }
  free_quarantine(cache->quarantine);
  free_site_cache(cache->sites);
  free_metadata(cache, sizeof(ThreadCache));
}

void ThreadCaches::destroy(ThreadCache* cache) {
  const os::LockGuard guard(lock_);
  unlist_and_free(cache);
}

void ThreadCaches::reset_past_counts(unsigned tier) {
  for (Counts& counts : past_counts_[tier]) {
    counts.allocations.reset();
    counts.frees.reset();
  }
}

} // namespace nearfar::alloc
