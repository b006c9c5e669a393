#include <cstring>
#include <new>

#include "alloc/allocator.hpp"
#include "alloc/call_chain.hpp"
#include "alloc/metadata.hpp"
#include "alloc/rule_statistics.hpp"
#include "base/frame_walk.hpp"
#include "os/address_space.hpp"
#include "os/objects.hpp"
#include "os/process.hpp"

namespace nearfar::alloc {

/// The rules that match a site in one thread, in their order.
struct SiteEntry {
  static constexpr unsigned max_rules = 11;
  std::uint64_t key = 0; ///< 0: empty
  std::uint16_t rules[max_rules] = {};
  std::uint8_t count = 0;
  bool more = false; ///< more rules match: they are evaluated for each allocation
};

/// Direct-mapped: a site replaces another one with the same index.
struct SiteCache {
  static constexpr std::size_t size = 1024;
  SiteEntry entries[size];
  os::Area stack;         ///< of the thread
  bool has_stack = false; ///< it was looked up
};

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

/// Creates the thread's site cache. Returns nullptr if the system has no memory.
SiteCache* create_site_cache() {
  if (this_thread_cache->sites != nullptr) return this_thread_cache->sites;
  process_allocator.open_stacks(0);
  if (!this_thread_cache->is_owned()) return nullptr;
  void* memory = allocate_metadata(sizeof(SiteCache));
  if (memory == nullptr) return nullptr;
  auto* sites = new (memory) SiteCache;
  this_thread_cache->sites = sites;
  return sites;
}

/// Whether libc itself calls: pthread_getattr_np() allocates while it holds a lock that
/// thread_stack() requires.
bool is_libc(const void* caller) {
  os::Object object;
  return os::find_object(caller, object) && std::strncmp(object.name, "libc.so", 7) == 0;
}

/// Looks the thread's stack up, for a call that is not libc's.
void learn_stack(SiteCache& sites, const void* caller) {
  if (is_libc(caller)) return;
  this_thread_cache->in_plan = true;
  sites.stack = os::thread_stack();
  this_thread_cache->in_plan = false;
  sites.has_stack = true;
}

std::uint64_t key_of(const CallChain& chain) {
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < chain.length; ++i)
    key = hash_with(key, reinterpret_cast<std::uintptr_t>(chain.addresses[i]));
  return key | 1;
}

bool is_frame(const SiteFrame& frame, const void* address) {
  os::Object object;
  if (!os::find_object(address, object)) return false;
  return reinterpret_cast<std::uintptr_t>(address) - object.base == frame.offset &&
         is_named(object, frame.object);
}

bool thread_matches(const Rule& rule) {
  if (rule.thread[0] == '\0') return true;
  char name[16];
  os::thread_name(name);
  const std::size_t length = std::strlen(rule.thread);
  if (rule.thread[length - 1] == '*') return std::strncmp(name, rule.thread, length - 1) == 0;
  return std::strcmp(name, rule.thread) == 0;
}

bool site_matches(const Rule& rule, const CallChain& chain) {
  if (rule.chain_length > chain.length) return false;
  for (std::size_t i = 0; i < rule.chain_length; ++i)
    if (!is_frame(rule.chain[i], chain.addresses[i])) return false;
  return thread_matches(rule);
}

void fill(SiteEntry& entry, const Plan& plan, std::uint64_t key, const CallChain& chain) {
  entry = SiteEntry{};
  for (std::uint32_t i = 0; i < plan.rule_count; ++i) {
    if (!site_matches(plan.rules[i], chain)) continue;
    if (entry.count == SiteEntry::max_rules) {
      entry.more = true;
      break;
    }
    entry.rules[entry.count++] = static_cast<std::uint16_t>(i);
    if (plan.rules[i].always_applies()) break; // no later rule can decide
  }
  entry.key = key;
}

bool within_budget(Rule& rule, std::size_t size) {
  const auto bytes = static_cast<std::int64_t>(process_allocator.block_bytes_of(size));
  if (rule.used.fetch_add(bytes, relaxed) + bytes <= rule.budget) return true;
  rule.used.fetch_sub(bytes, relaxed);
  return false;
}

bool within_ratio(Rule& rule, std::size_t size) {
  const std::uint64_t seen = rule.seen.fetch_add(size, relaxed) + size;
  const std::uint64_t placed = rule.placed.fetch_add(size, relaxed) + size;
  if (static_cast<double>(placed) <= rule.ratio * static_cast<double>(seen)) return true;
  rule.placed.fetch_sub(size, relaxed);
  return false;
}

/// Whether a rule applies to a block of this size; if so, charges its budget.
bool apply(Rule& rule, std::size_t size) {
  if (size < rule.min_bytes || size > rule.max_bytes) return false;
  if (rule.ratio >= 0 && !within_ratio(rule, size)) return false;
  return rule.budget < 0 || within_budget(rule, size);
}

Decision decision_of(Rule& rule, std::size_t size) {
  if (rule.budget < 0) return {rule.tier, nullptr, 0};
  return {rule.tier, &rule, process_allocator.block_bytes_of(size)};
}

Decision decide_among(const Plan& plan, const SiteEntry& entry, const CallChain& chain,
                      std::size_t size) {
  for (unsigned i = 0; i < entry.count; ++i)
    if (Rule& rule = plan.rules[entry.rules[i]]; apply(rule, size)) return decision_of(rule, size);
  if (entry.more)
    for (std::uint32_t i = entry.rules[SiteEntry::max_rules - 1] + 1u; i < plan.rule_count; ++i)
      if (Rule& rule = plan.rules[i]; site_matches(rule, chain) && apply(rule, size))
        return decision_of(rule, size);
  return {plan.default_tier, nullptr, 0};
}

} // namespace

Decision decide(const Allocator& allocator, std::size_t size, CallSite site) {
  const Plan& plan = allocator.plan;
  const Decision otherwise{plan.default_tier, nullptr, 0};
  if (this_thread_cache->in_plan) return otherwise; // walking the stack may allocate
  SiteCache* sites = this_thread_cache->sites;
  if (sites == nullptr) [[unlikely]] {
    sites = create_site_cache();
    if (sites == nullptr) return otherwise;
  }
  CallChain chain;
  chain.addresses[0] = site.return_address;
  chain.length = 1;
  if (plan.longest > 1) {
    if (!sites->has_stack && !plan.by_tables) [[unlikely]]
      learn_stack(*sites, site.return_address);
    this_thread_cache->in_plan = true;
    if (plan.by_tables)
      walk_tables(site.return_address, plan.longest, chain);
    else
      walk_pointers(site.frame, sites->stack, plan.longest, chain);
    this_thread_cache->in_plan = false;
  }
  const std::uint64_t key = key_of(chain);
  SiteEntry& entry = sites->entries[(key >> 1) % SiteCache::size];
  if (entry.key != key) [[unlikely]] {
    this_thread_cache->in_plan = true;
    fill(entry, plan, key, chain);
    this_thread_cache->in_plan = false;
  }
  return decide_among(plan, entry, chain, size);
}

void commit_decision(Allocator& allocator, const Decision& decision, void* block) {
  if (decision.charged == nullptr) return;
  Rule& rule = *decision.charged;
  const bool in_tier =
      block != nullptr && static_cast<int>(allocator.window.tier_of(block)) == decision.tier;
  const std::size_t bytes = in_tier ? allocator.usable_size(block, "malloc") : 0;
  const std::int64_t change =
      static_cast<std::int64_t>(bytes) - static_cast<std::int64_t>(decision.charged_bytes);
  const std::int64_t live_bytes = rule.used.fetch_add(change, relaxed) + change;
  count_placed(rule.statistics, in_tier, in_tier ? bytes : decision.charged_bytes);
  if (!in_tier) return;
  allocator.set_budget(block, rule.budget_number + 1);
  count_live(rule.statistics, live_bytes);
}

Rule* Plan::rule_of_budget(int budget) const {
  for (Rule* rule = rules; rule != rules + rule_count; ++rule)
    if (rule->budget >= 0 && rule->budget_number + 1 == budget) return rule;
  return nullptr;
}

void Plan::charge(int budget, std::int64_t bytes, std::int64_t growth) const {
  Rule* rule = rule_of_budget(budget);
  if (rule == nullptr) return;
  count_live(rule->statistics, rule->used.fetch_add(bytes, relaxed) + bytes);
  if (growth > 0) count_growth(rule->statistics, static_cast<std::size_t>(growth));
}

void Plan::discharge(int budget, const void* block, std::size_t bytes) const {
  Rule* rule = rule_of_budget(budget);
  if (rule == nullptr) return;
  sample_block(rule->statistics, block, bytes);
  rule->used.fetch_sub(static_cast<std::int64_t>(bytes), relaxed);
}

void free_site_cache(SiteCache* sites) {
  if (sites != nullptr) free_metadata(sites, sizeof(SiteCache));
}

} // namespace nearfar::alloc
