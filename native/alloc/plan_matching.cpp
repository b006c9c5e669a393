#include <cstring>
#include <new>

#include "alloc/heap.hpp"
#include "alloc/metadata.hpp"
#include "alloc/plan.hpp"
#include "alloc/rule_accounts.hpp"
#include "base/frame_walk.hpp"
#include "os/process.hpp"

namespace nearfar::alloc {

/// Which rules may hold at a site, in their order, for one thread.
struct SiteEntry {
  static constexpr unsigned most = 11;
  std::uint64_t key = 0; ///< 0: empty
  std::uint16_t rules[most] = {};
  std::uint8_t count = 0;
  bool more = false; ///< there are further ones: all rules are gone through each time
};

/// Direct-mapped; a site that falls on another's place takes it.
struct SiteCache {
  static constexpr std::size_t size = 1024;
  SiteEntry entries[size];
  os::Area stack; ///< of the thread
};

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

struct Chain {
  const void* addresses[longest_chain];
  std::size_t length = 0;
};

SiteCache* open_sites() {
  if (this_cache->sites != nullptr) return this_cache->sites;
  open_cache(0);
  if (!own_cache()) return nullptr;
  void* memory = take_metadata(sizeof(SiteCache));
  if (memory == nullptr) return nullptr;
  auto* sites = new (memory) SiteCache;
  this_cache->inside_plan = true;
  if (plan.longest > 1 && !plan.by_tables) sites->stack = os::thread_stack();
  this_cache->inside_plan = false;
  this_cache->sites = sites;
  return sites;
}

/// Return addresses by frame pointers. On the thread's own stack everything from this frame up is
/// mapped; other stacks are those of coroutines and signal handlers.
void walk_pointers(const void* frame, const os::Area& stack, Chain& chain) {
  const auto begin = reinterpret_cast<std::uintptr_t>(frame);
  const bool own_stack = begin >= stack.begin && begin < stack.end;
  walk_frames(
      begin,
      [&](std::uintptr_t at, FrameRecord& record) {
        const auto* from = reinterpret_cast<const FrameRecord*>(at);
        if (!own_stack || at > stack.end - sizeof record)
          return os::try_read(from, &record, sizeof record) == os::Read::done;
        record = *from;
        return true;
      },
      [&](std::uintptr_t caller) {
        chain.addresses[chain.length++] = reinterpret_cast<const void*>(caller);
        return chain.length < plan.longest;
      });
}

/// The same by tables; what lies inside this library comes first and is left out.
void walk_tables(const void* return_address, Chain& chain) {
  constexpr std::size_t inside = 12;
  const void* found[longest_chain + inside];
  const std::size_t count = os::call_chain_by_tables(found, longest_chain + inside);
  std::size_t at = 0;
  while (at < count && found[at] != return_address)
    ++at;
  for (++at; at < count && chain.length < plan.longest; ++at)
    chain.addresses[chain.length++] = found[at];
}

std::uint64_t key_of(const Chain& chain) {
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < chain.length; ++i) {
    key = (key ^ reinterpret_cast<std::uintptr_t>(chain.addresses[i])) * 0x9e3779b97f4a7c15u;
    key ^= key >> 32;
  }
  return key | 1;
}

bool is_frame(const SiteFrame& frame, const void* address) {
  os::Object object;
  if (!os::find_object(address, object)) return false;
  if (reinterpret_cast<std::uintptr_t>(address) - object.base != frame.offset) return false;
  if (frame.build_id_bytes > 0)
    return object.build_id_bytes >= frame.build_id_bytes &&
           std::memcmp(object.build_id, frame.build_id, frame.build_id_bytes) == 0;
  return std::strcmp(frame.name, object.name) == 0;
}

bool thread_matches(const Rule& rule) {
  if (rule.thread[0] == '\0') return true;
  char name[16];
  os::thread_name(name);
  const std::size_t length = std::strlen(rule.thread);
  if (rule.thread[length - 1] == '*') return std::strncmp(name, rule.thread, length - 1) == 0;
  return std::strcmp(name, rule.thread) == 0;
}

bool site_matches(const Rule& rule, const Chain& chain) {
  if (rule.chain_length > chain.length) return false;
  for (std::size_t i = 0; i < rule.chain_length; ++i)
    if (!is_frame(rule.chain[i], chain.addresses[i])) return false;
  return thread_matches(rule);
}

void fill(SiteEntry& entry, std::uint64_t key, const Chain& chain) {
  entry = SiteEntry{};
  for (std::uint32_t i = 0; i < plan.rule_count; ++i) {
    if (!site_matches(plan.rules[i], chain)) continue;
    if (entry.count == SiteEntry::most) {
      entry.more = true;
      break;
    }
    entry.rules[entry.count++] = static_cast<std::uint16_t>(i);
    if (plan.rules[i].holds_always()) break; // no rule behind it can decide
  }
  entry.key = key;
}

bool within_budget(Rule& rule, std::size_t size) {
  const auto bytes = static_cast<std::int64_t>(rounded_size(size));
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

/// Whether a rule takes a block of this size; if so, its budget is charged.
bool takes(Rule& rule, std::size_t size) {
  if (size < rule.least_bytes || size > rule.most_bytes) return false;
  if (rule.ratio >= 0 && !within_ratio(rule, size)) return false;
  return rule.budget < 0 || within_budget(rule, size);
}

Decision decision_of(Rule& rule, std::size_t size) {
  if (rule.budget < 0) return {rule.tier, nullptr, 0};
  return {rule.tier, &rule, rounded_size(size)};
}

Decision decide_among(const SiteEntry& entry, const Chain& chain, std::size_t size) {
  for (unsigned i = 0; i < entry.count; ++i)
    if (Rule& rule = plan.rules[entry.rules[i]]; takes(rule, size)) return decision_of(rule, size);
  if (entry.more)
    for (std::uint32_t i = entry.rules[SiteEntry::most - 1] + 1u; i < plan.rule_count; ++i)
      if (Rule& rule = plan.rules[i]; site_matches(rule, chain) && takes(rule, size))
        return decision_of(rule, size);
  return {plan.default_tier, nullptr, 0};
}

} // namespace

Decision decide(std::size_t size, const void* return_address, const void* frame) {
  const Decision otherwise{plan.default_tier, nullptr, 0};
  if (this_cache->inside_plan) return otherwise; // looking at the stack allocates
  SiteCache* sites = this_cache->sites;
  if (sites == nullptr) [[unlikely]] {
    sites = open_sites();
    if (sites == nullptr) return otherwise;
  }
  Chain chain;
  chain.addresses[0] = return_address;
  chain.length = 1;
  if (plan.longest > 1) {
    this_cache->inside_plan = true;
    if (plan.by_tables)
      walk_tables(return_address, chain);
    else
      walk_pointers(frame, sites->stack, chain);
    this_cache->inside_plan = false;
  }
  const std::uint64_t key = key_of(chain);
  SiteEntry& entry = sites->entries[(key >> 1) % SiteCache::size];
  if (entry.key != key) [[unlikely]] {
    this_cache->inside_plan = true;
    fill(entry, key, chain);
    this_cache->inside_plan = false;
  }
  return decide_among(entry, chain, size);
}

void settle(const Decision& decision, void* block) {
  if (decision.charged == nullptr) return;
  Rule& rule = *decision.charged;
  const bool here = block != nullptr && static_cast<int>(tier_of(block)) == decision.tier;
  const std::size_t bytes = here ? usable_size(block, "malloc") : 0;
  const std::int64_t change =
      static_cast<std::int64_t>(bytes) - static_cast<std::int64_t>(decision.charged_bytes);
  const std::int64_t alive = rule.used.fetch_add(change, relaxed) + change;
  count_placed(rule, here, here ? bytes : decision.charged_bytes);
  if (!here) return;
  set_budget(block, rule.budget_number + 1);
  count_alive(rule, alive);
}

Rule* rule_of_budget(int budget) {
  for (std::uint32_t i = 0; i < plan.rule_count; ++i)
    if (plan.rules[i].budget >= 0 && plan.rules[i].budget_number + 1 == budget)
      return plan.rules + i;
  return nullptr;
}

void charge_budget(int budget, std::int64_t bytes, std::int64_t grown) {
  Rule* rule = rule_of_budget(budget);
  if (rule == nullptr) return;
  count_alive(*rule, rule->used.fetch_add(bytes, relaxed) + bytes);
  if (grown > 0) count_grown(*rule, static_cast<std::size_t>(grown));
}

void leave_budget(int budget, const void* block, std::size_t bytes) {
  Rule* rule = rule_of_budget(budget);
  if (rule == nullptr) return;
  look_at_pages(*rule, block, bytes);
  rule->used.fetch_sub(static_cast<std::int64_t>(bytes), relaxed);
}

void free_sites(SiteCache* sites) {
  if (sites != nullptr) return_metadata(sites, sizeof(SiteCache));
}

} // namespace nearfar::alloc
