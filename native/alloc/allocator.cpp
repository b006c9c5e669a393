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
  tiers[0].attach(window, 0);
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
  tiers[*slot].attach(window, *slot);
  if (Status s = tiers[*slot].open(name, *options, spill_to); !s) return s.error();
  return static_cast<int>(*slot);
}

void Allocator::open_stacks(unsigned tier) {
  if (this != &process_allocator || this_thread_cache == &exiting_thread_cache ||
      !tiers[tier].ready())
    return;
  if (this_thread_cache == &no_thread_cache) {
    ThreadCache* acquired = caches.acquire();
    if (acquired == nullptr) return;
    this_thread_cache = acquired; // before libc registers it, which may allocate
    os::set_thread_value(acquired);
  }
  TierStacks*& stacks = this_thread_cache->tiers[tier];
  if (stacks == &empty_stacks && !settings.writes_blocks())
    if (TierStacks* created = caches.create_stacks(); created != nullptr) stacks = created;
  TierStacks* home = this_thread_cache->tiers[settings.default_tier];
  if (home != home_stacks || unplanned(home) != unplanned_stacks ||
      home->fast_owner != fast_owner_of(*home))
    choose_home();
}

/// The correct value of TierStacks::fast_owner.
std::uint16_t Allocator::fast_owner_of(const TierStacks& stacks) const {
  const bool fast = stacks.caches && stacks.owner != no_owner && settings.quarantine_bytes == 0;
  return fast ? stacks.owner : TierStacks::no_fast_owner;
}

void Allocator::choose_home() const {
  for (TierStacks* stacks : this_thread_cache->tiers) {
    if (stacks == &empty_stacks) continue;
    stacks->fast_owner = fast_owner_of(*stacks);
    const bool late = stacks->caches && stacks->owner != no_owner;
    stacks->quarantine = late ? this_thread_cache->quarantine : nullptr;
  }
  home_stacks = this_thread_cache->tiers[settings.default_tier];
  unplanned_stacks = unplanned(home_stacks);
}

void Allocator::flush_stacks(ThreadCache& cache, unsigned tier, std::size_t keep_bytes) {
  if (cache.tiers[tier] == &empty_stacks) return;
  for (unsigned c = 0; c < cached_classes; ++c) {
    return_blocks(tier, *cache.tiers[tier], c);
    flush_oldest(tier, *cache.tiers[tier], c,
                 static_cast<std::uint32_t>(keep_bytes / class_infos[c].bytes));
  }
}

void Allocator::empty_cache(ThreadCache& cache) {
  for (unsigned t = 0; t < tier_count; ++t) {
    flush_stacks(cache, t);
    for (unsigned c = 0; c < cached_classes && cache.tiers[t] != &empty_stacks; ++c)
      tiers[t].classes[c].disown(window, cache.tiers[t]->owned[c]);
  }
}

void Allocator::drop_stacks() {
  if (!thread_cache().is_owned()) return;
  empty_cache(thread_cache());
  for (TierStacks* stacks : thread_cache().tiers) {
    if (stacks == &empty_stacks) continue;
    for (BlockStack& stack : stacks->stacks)
      stack.close();
    stacks->caches = false;
  }
  choose_home();
}

void Allocator::close_thread_cache(ThreadCache* cache) {
  constexpr unsigned max_warm = 16;
  constexpr std::size_t keep_bytes = 4096;   ///< in each stack
  this_thread_cache = &exiting_thread_cache; // later destructors may still allocate and free
  home_stacks = unplanned_stacks = &empty_stacks;
  if (cache->quarantine != nullptr)
    for (Quarantine::Half& half : cache->quarantine->halves)
      release_quarantined(*cache->quarantine, half);
  const bool warm = caches.warm_count() < max_warm && !decay.immediate();
  for (unsigned t = 0; t < tier_count && warm; ++t)
    flush_stacks(*cache, t, keep_bytes);
  if (!warm) empty_cache(*cache);
  caches.retire(cache, warm, decay.tick());
}

/// Frees the blocks in caches of exited threads that no new thread has taken, or all of them.
void Allocator::cool_idle_caches(bool all) {
  caches.cool(decay.tick(), all, [this](ThreadCache& cache) { empty_cache(cache); });
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
  cool_idle_caches(all);
  for (TierHeap& tier : tiers)
    if (tier.ready()) purge(tier, all);
  errno = saved_errno;
  decay.purge_lock.unlock();
}

std::size_t Allocator::trim(unsigned tier) {
  flush_stacks(thread_cache(), tier);
  const os::LockGuard guard(decay.purge_lock);
  cool_idle_caches(true);
  return purge(tiers[tier], true);
}

} // namespace nearfar::alloc
