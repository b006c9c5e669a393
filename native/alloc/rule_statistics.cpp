#include "alloc/rule_statistics.hpp"

#include <algorithm>
#include <new>

#include "alloc/allocator.hpp"
#include "alloc/metadata.hpp"
#include "alloc/plan.hpp"
#include "os/address_space.hpp"
#include "os/numa.hpp"

namespace nearfar::alloc {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::size_t max_sampled_pages = 1024;
constexpr std::size_t pages_at_once = 32; ///< on the stack, which may be that of a signal handler
constexpr std::size_t block_pages = 16;   ///< sampled in a block, of a large one every 64th
constexpr std::size_t large_interval = 64;
constexpr unsigned small_bits = 6; ///< one of 64 blocks below a page is sampled
/// 2^64 over the golden ratio: multiples of it have no period.
constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
constexpr std::uintptr_t page = os::page_bytes;

void count_pages(RuleStatistics& statistics, const int* nodes, std::size_t count) {
  statistics.pages.add(count);
  for (std::size_t i = 0; i < count; ++i)
    if (nodes[i] >= 0 && nodes[i] < HM_MAX_NODES)
      statistics.on_node[nodes[i]].add(1);
    else
      statistics.absent.add(1);
}

/// Samples up to `most` of `pages`, one in each of as many equal parts, at places in these parts that
/// have no period: nodes that take turns are sampled in their proportion.
void sample_pages(RuleStatistics& statistics, std::uintptr_t begin, std::size_t pages,
                  std::size_t most) {
  const std::size_t sampled = std::min({pages, most, max_sampled_pages});
  const void* addresses[pages_at_once] = {}; // a sanitizer's build does not see that all are set
  int nodes[pages_at_once];
  std::size_t count = 0;
  for (std::size_t i = 0; i < sampled; ++i) {
    const std::size_t first = pages * i / sampled, next = pages * (i + 1) / sampled;
    const std::size_t behind = ((i * golden) >> 32) * (next - first) >> 32;
    addresses[count++] = reinterpret_cast<const void*>(begin + (first + behind) * page);
    if (count < pages_at_once && i + 1 < sampled) continue;
    if (os::locate_pages(addresses, count, nodes) == 0) count_pages(statistics, nodes, count);
    count = 0;
  }
}

/// Allocates the statistics of a rule. Returns false if memory is exhausted.
bool enable(RuleStatistics*& statistics) {
  void* memory = allocate_metadata(sizeof(RuleStatistics));
  if (memory != nullptr) statistics = new (memory) RuleStatistics;
  return memory != nullptr;
}

/// The rule whose budget a block is charged to, if it is live.
Rule* rule_of_state(const Plan& plan, std::int8_t state) {
  return state >= budgeted && state < no_block ? plan.rule_of_budget(state - budgeted + 1)
                                               : nullptr;
}

void sample_slab(const Plan& plan, Slab& slab) {
  const std::size_t bytes = class_infos[slab.size_class].bytes;
  for (std::uint32_t i = 0; i < slab.blocks; ++i)
    if (Rule* rule = rule_of_state(plan, slab.states()[i].load(relaxed)); rule != nullptr)
      sample_block(rule->statistics, slab.start + i * bytes, bytes);
}

void sample_span(const Allocator& allocator, std::uint32_t index) {
  const Span& span = allocator.window.spans[index];
  const SpanKind kind = span.kind(std::memory_order_acquire);
  if (kind == SpanKind::slab && span.extent.load(relaxed) == index)
    sample_slab(allocator.plan, *slab_of(span));
  if (kind != SpanKind::large) return;
  if (const int budget = span.budget(); budget != 0)
    if (Rule* rule = allocator.plan.rule_of_budget(budget); rule != nullptr)
      sample_block(rule->statistics, allocator.window.span_address(index),
                   std::size_t{span.extent.load(relaxed)} << span_shift);
}

} // namespace

bool enable_rule_statistics(Plan& plan) {
  unsigned count = 0;
  for (std::uint32_t i = 0; i < plan.rule_count; ++i)
    count += plan.rules[i].budget >= 0;
  for (std::uint32_t i = 0; i < plan.rule_count; ++i) {
    Rule& rule = plan.rules[i];
    if (rule.budget < 0) {
      if (count == max_budgets) continue;
      rule.budget = INT64_MAX;
      rule.budget_number = static_cast<std::uint8_t>(count++);
    }
    if (!enable(rule.statistics)) return false;
  }
  for (MappingRule& rule : plan.mapping)
    if (!enable(rule.statistics)) return false;
  return true;
}

void count_placed(RuleStatistics* statistics, bool in_tier, std::size_t bytes) {
  if (statistics == nullptr) return;
  (in_tier ? statistics->allocations : statistics->elsewhere).add(1);
  (in_tier ? statistics->allocated_bytes : statistics->elsewhere_bytes).add(bytes);
}

void count_growth(RuleStatistics* statistics, std::size_t bytes) {
  if (statistics != nullptr) statistics->allocated_bytes.add(bytes);
}

void count_live(RuleStatistics* statistics, std::int64_t bytes) {
  if (statistics == nullptr) return;
  std::int64_t peak = statistics->peak_bytes.load(relaxed);
  while (bytes > peak && !statistics->peak_bytes.compare_exchange_weak(peak, bytes, relaxed)) {
  }
}

void sample_block(RuleStatistics* statistics, const void* block, std::size_t bytes) {
  if (statistics == nullptr) return;
  const std::uint64_t seen = statistics->freed.get();
  statistics->freed.add(1);
  if (bytes < page && seen * golden >> (64 - small_bits) != 0) return;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const std::size_t pages = std::max<std::size_t>(bytes / page, 1);
  sample_pages(*statistics, address & ~(page - 1), pages,
               std::max(block_pages, pages / large_interval));
}

void sample_mapping(RuleStatistics* statistics, std::uintptr_t begin, std::size_t bytes,
                    std::size_t most) {
  if (statistics == nullptr || bytes < page) return;
  sample_pages(*statistics, begin, bytes / page, most);
}

void sample_live_blocks(Allocator& allocator) {
  const os::LockGuard guard(allocator.decay.purge_lock); // only a purge destroys slabs
  for (TierHeap& tier : allocator.tiers) {
    if (!tier.ready()) continue;
    const std::uint32_t first = tier.runs.first_span();
    const std::uint32_t used = tier.runs.used_spans();
    for (std::uint32_t i = 0; i < used; ++i)
      sample_span(allocator, first + i);
  }
}

} // namespace nearfar::alloc
