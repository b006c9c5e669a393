#include "alloc/allocator.hpp"

#include <cstring>
#include <nearfar/hmalloc.h>
#include <utility>

#include "os/process.hpp"
#include "os/signals.hpp"

struct hm_address_window hm_window = {0, 0};

namespace nearfar::alloc {

constinit Allocator process_allocator;

namespace {

void close_exiting_thread(void* cache) {
  process_allocator.close_thread_cache(static_cast<ThreadCache*>(cache));
}

} // namespace

bool Allocator::open() {
  if (tiers[0].ready()) return true;
  if (!window.open()) return false;
  const os::SignalsBlocked blocked;
  const os::LockGuard guard(tiers_lock);
  if (tiers[0].ready()) return true;
  if (this == &process_allocator) { // before the first block exists
    hm_window.shift = window.shift;
    hm_window.base = window.base;
    os::at_thread_exit(close_exiting_thread);
  }
  return tiers[0].open_default();
}

void Allocator::close() {
  for (TierHeap& tier : tiers) {
    if (!tier.ready()) continue;
    free_slab_metadata(window, tier.first_span(), tier.first_span() + tier.runs.used_spans());
    tier.close();
  }
  arenas.close();
  window.close();
}

int Allocator::find_tier(const char* name) const {
  for (unsigned t = 0; t < tier_count; ++t)
    if (tiers[t].ready() && std::strcmp(tiers[t].name(), name) == 0) return static_cast<int>(t);
  return -1;
}

/// The tier that a tier spills to according to its options, -1 for none.
Result<int> Allocator::find_spill_target(const char* name, const TierOptions& options) const {
  const char* target = options.spill_to;
  if (target[0] == '\0') return -1;
  const int found = find_tier(target);
  if (found < 0 || std::strcmp(target, name) == 0)
    return Error::make(Errc::bad_input,
                       "invalid overflow=spill:%s of tier %s: no other tier has this name", target,
                       name)
        .try_next("use near, far or the name of an existing tier");
  return found;
}

Status Allocator::resolve_spill_targets() {
  for (TierHeap& tier : tiers) {
    if (!tier.ready()) continue;
    Result<int> target = find_spill_target(tier.name(), tier.runs.backing().options);
    if (!target) return target.error();
    tier.set_spill_to(*target);
  }
  return Done{};
}

/// The slot for a name: "far" has its own, other names get the first free one above it.
Result<unsigned> Allocator::find_free_slot(const char* name) const {
  if (find_tier(name) >= 0) return Error::make(Errc::exists, "tier %s already exists", name);
  const bool far = std::strcmp(name, "far") == 0;
  for (unsigned t = far ? 1 : 2; t < tier_count; ++t)
    if (tiers[t].absent()) return t;
  return Error::make(Errc::no_space, "all %u tiers exist already", tier_count);
}

Result<int> Allocator::create_tier(const char* name, const char* specification) {
  if (!is_tier_name(name))
    return Error::make(Errc::bad_input, "invalid tier name '%.40s': %s", name, tier_name_rule);
  Result<TierOptions> options = parse_tier_options(specification);
  if (!options) return options.error();
  const os::SignalsBlocked blocked; // a handler may fork
  const os::LockGuard guard(tiers_lock);
  Result<unsigned> slot = find_free_slot(name);
  if (!slot) return slot.error();
  int spill_to = -1;
  // configure() calls resolve_spill_targets() after it has created all tiers.
  if (this != &process_allocator || is_configured()) {
    Result<int> target = find_spill_target(name, *options);
    if (!target) return target.error();
    spill_to = *target;
  }
  caches.reset_past_counts(*slot);
  if (Status s = tiers[*slot].open(name, *options, spill_to); !s) return s.error();
  return static_cast<int>(*slot);
}

void Allocator::open_stacks(unsigned tier) {
  if (this != &process_allocator || this_thread_cache == &exiting_thread_cache ||
      !tiers[tier].ready())
    return;
  if (this_thread_cache == &no_thread_cache) {
    ThreadCache* created = caches.create();
    if (created == nullptr) return;
    this_thread_cache = created; // before libc registers it, which may allocate
    os::set_thread_value(created);
  }
  if (settings.writes_blocks()) return;
  TierStacks*& stacks = this_thread_cache->tiers[tier];
  if (stacks != &empty_stacks) return;
  if (TierStacks* created = ThreadCaches::create_stacks(); created != nullptr) stacks = created;
}

void Allocator::flush_stacks(ThreadCache& cache, unsigned tier) {
  if (cache.tiers[tier] == &empty_stacks) return;
  for (unsigned c = 0; c < cached_classes; ++c) {
    BlockStack& stack = cache.tiers[tier]->stacks[c];
    const std::uint32_t count = std::exchange(stack.count, 0); // first, as in flush_half()
    if (count > 0) tiers[tier].classes[c].free(window, stack.blocks, count, decay.tick());
  }
}

void Allocator::drop_stacks() {
  if (!thread_cache().is_owned()) return;
  for (unsigned t = 0; t < tier_count; ++t) {
    flush_stacks(thread_cache(), t);
    for (BlockStack& stack : thread_cache().tiers[t]->stacks)
      stack.capacity = 0;
  }
}

void Allocator::close_thread_cache(ThreadCache* cache) {
  this_thread_cache = &exiting_thread_cache; // later destructors may still allocate and free
  if (cache->quarantine != nullptr)
    for (Quarantine::Half& half : cache->quarantine->halves)
      release_quarantined(half);
  for (unsigned t = 0; t < tier_count; ++t)
    flush_stacks(*cache, t);
  caches.destroy(cache);
}

/// Returns old memory of a tier, or all free memory, to the system. Returns the bytes.
std::size_t Allocator::purge(TierHeap& tier, bool all) {
  const std::size_t in_arenas = arenas.purge(tier, decay.tick(), all);
  return in_arenas + tier.purge(decay.tick(), all);
}

void Allocator::return_old_memory() {
  if (!decay.purge_lock.try_lock()) return;
  const int saved_errno = errno;
  const bool all = decay.immediate();
  for (TierHeap& tier : tiers)
    if (tier.ready()) purge(tier, all);
  errno = saved_errno;
  decay.purge_lock.unlock();
}

std::size_t Allocator::trim(unsigned tier) {
  flush_stacks(thread_cache(), tier);
  const os::LockGuard guard(decay.purge_lock);
  return purge(tiers[tier], true);
}

} // namespace nearfar::alloc
