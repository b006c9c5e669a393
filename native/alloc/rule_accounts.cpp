#include "alloc/rule_accounts.hpp"

#include <new>

#include "alloc/decay.hpp"
#include "alloc/heap.hpp"
#include "alloc/metadata.hpp"
#include "alloc/plan.hpp"
#include "os/address_space.hpp"
#include "os/numa.hpp"

namespace nearfar::alloc {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::size_t most_pages = 16;    ///< looked at in one block
constexpr std::uint64_t every_small = 64; ///< of blocks below a page, one in so many is looked at
constexpr std::uintptr_t page = os::page_bytes;

void look_at(RuleAccounts& accounts, std::uintptr_t address) {
  int node = -1;
  if (os::locate_pages(reinterpret_cast<std::byte*>(address & ~(page - 1)), 1, &node) != 0) return;
  accounts.pages.add(1);
  if (node >= 0 && node < HM_MAX_NODES)
    accounts.on_node[node].add(1);
  else
    accounts.absent.add(1);
}

/// The rule that a block counts against, if it lives.
Rule* rule_of_state(std::int8_t state) {
  return state >= budgeted && state < no_block ? rule_of_budget(state - budgeted + 1) : nullptr;
}

void look_at_slab(const Span& span, const std::byte* start) {
  const auto* states = reinterpret_cast<const AtomicState*>(span.word.load(relaxed));
  const auto* slab = reinterpret_cast<const Slab*>(states) - 1;
  const std::size_t bytes = class_infos[span.size_class.load(relaxed)].bytes;
  for (std::uint32_t i = 0; i < slab->blocks; ++i)
    if (Rule* rule = rule_of_state(states[i].load(relaxed)); rule != nullptr)
      look_at_pages(*rule, start + i * bytes, bytes);
}

void look_at_span(std::uint32_t number) {
  const Span& span = geometry.spans[number];
  const auto kind = static_cast<SpanKind>(span.kind.load(std::memory_order_acquire));
  if (kind == SpanKind::slab && span.extent.load(relaxed) == number)
    look_at_slab(span, span_address(number));
  if (kind != SpanKind::large) return;
  if (const int budget = span.budget.load(relaxed); budget != 0)
    if (Rule* rule = rule_of_budget(budget); rule != nullptr)
      look_at_pages(*rule, span_address(number),
                    std::size_t{span.extent.load(relaxed)} << span_shift);
}

} // namespace

bool open_rule_accounts() {
  unsigned taken = 0;
  for (std::uint32_t i = 0; i < plan.rule_count; ++i)
    taken += plan.rules[i].budget >= 0;
  for (std::uint32_t i = 0; i < plan.rule_count; ++i) {
    Rule& rule = plan.rules[i];
    if (rule.budget < 0) {
      if (taken == most_budgets) continue;
      rule.budget = INT64_MAX;
      rule.budget_number = static_cast<std::uint8_t>(taken++);
    }
    void* memory = take_metadata(sizeof(RuleAccounts));
    if (memory == nullptr) return false;
    rule.accounts = new (memory) RuleAccounts;
  }
  return true;
}

void count_placed(Rule& rule, bool here, std::size_t bytes) {
  if (rule.accounts == nullptr) return;
  RuleAccounts& accounts = *rule.accounts;
  (here ? accounts.allocations : accounts.elsewhere).add(1);
  (here ? accounts.allocated_bytes : accounts.elsewhere_bytes).add(bytes);
}

void count_grown(Rule& rule, std::size_t bytes) {
  if (rule.accounts != nullptr) rule.accounts->allocated_bytes.add(bytes);
}

void count_alive(Rule& rule, std::int64_t bytes) {
  if (rule.accounts == nullptr) return;
  std::int64_t most = rule.accounts->peak_bytes.load(relaxed);
  while (bytes > most && !rule.accounts->peak_bytes.compare_exchange_weak(most, bytes, relaxed)) {
  }
}

void look_at_pages(Rule& rule, const void* block, std::size_t bytes) {
  if (rule.accounts == nullptr) return;
  RuleAccounts& accounts = *rule.accounts;
  const std::uint64_t seen = accounts.freed.get();
  accounts.freed.add(1);
  if (bytes < page && seen % every_small != 0) return;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const std::size_t pages = bytes / page > 0 ? bytes / page : 1;
  const std::size_t looked_at = pages < most_pages ? pages : most_pages;
  for (std::size_t i = 0; i < looked_at; ++i)
    look_at(accounts, address + pages * i / looked_at * page);
}

void look_at_living() {
  const os::LockGuard guard(purge_lock()); // slabs stay
  for (TierHeap& tier : tiers) {
    if (!tier.ready()) continue;
    const std::uint32_t first = tier.runs.first_span();
    const std::uint32_t used = tier.runs.used_spans();
    for (std::uint32_t i = 0; i < used; ++i)
      look_at_span(first + i);
  }
}

} // namespace nearfar::alloc
