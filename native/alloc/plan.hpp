// Placement plans: which allocations go to which tier (docs/formats/plan.md).
//
// A rule names a tier and conditions; the first rule that holds decides, otherwise the plan's
// default. Conditions on the call site and the thread are evaluated once for each site and thread,
// and kept in the thread's site cache; sizes, budgets and ratios are evaluated for each allocation.
//
// Thread safety  load_plan() by one thread, before any other function; the others from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "alloc/mapping_rules.hpp"
#include "alloc/site_frame.hpp"
#include "base/call_site.hpp"
#include "base/result.hpp"

namespace nearfar::alloc {

class Allocator;
struct RuleStatistics;

inline constexpr unsigned max_budgets = 100; ///< rules with a budget in a plan

/// A rule for heap blocks. Those for mappings and global variables are in mapping_rules.hpp.
struct Rule {
  std::uint32_t number = 0; ///< among all rules of the plan, from 1
  int tier = 0;
  std::uint64_t min_bytes = 0, max_bytes = UINT64_MAX;
  const SiteFrame* chain = nullptr;              ///< innermost first
  std::uint8_t chain_length = 0;                 ///< 0: any site
  char thread[16] = "";                          ///< empty: any; a final '*' matches anything
  std::int64_t budget = -1;                      ///< bytes in live blocks, -1 for none
  std::uint8_t budget_number = 0;                ///< among the rules with a budget
  double ratio = -1;                             ///< fraction of the bytes, -1 for all
  std::atomic<std::int64_t> used{0};             ///< of the budget
  std::atomic<std::uint64_t> seen{0}, placed{0}; ///< bytes, for the ratio
  RuleStatistics* statistics = nullptr;          ///< if rules are counted

  bool always_applies() const {
    return min_bytes == 0 && max_bytes == UINT64_MAX && budget < 0 && ratio < 0;
  }
};

struct Plan {
  Rule* rules = nullptr;
  std::uint32_t rule_count = 0;
  MappingRules mapping; ///< for mappings and global variables
  int default_tier = 0;
  std::uint8_t longest = 0; ///< longest chain of any rule
  bool by_tables = false;   ///< chains are found by unwind tables, not by frame pointers

  /// The rule whose budget has this number, counted from 1; nullptr if there is none.
  Rule* rule_of_budget(int budget) const;
  /// Charges bytes to a budget; `growth` is the growth of the resized block that they belong to.
  void charge(int budget, std::int64_t bytes, std::int64_t growth) const;
  /// Discharges a block of so many bytes that is about to be freed.
  void discharge(int budget, const void* block, std::size_t bytes) const;
};

/// Reads a plan for an allocator, and creates tiers that it names and that do not exist. Errors:
/// bad_input with the line number, not_found, no_permission, and those of tiers.
Status load_plan(Allocator& allocator, const char* path);

/// Tier of a block, and the rule that it is charged to.
struct Decision {
  int tier = 0;
  Rule* charged = nullptr; ///< the rule whose budget it is charged to
  std::size_t charged_bytes = 0;
};

/// The decision for `size` bytes at a call site.
Decision decide(const Allocator& allocator, std::size_t size, CallSite site);

/// Called with the block allocated after a decision, or nullptr: charges its exact size until it is
/// freed, or nothing if it is in another tier.
void commit_decision(Allocator& allocator, const Decision& decision, void* block);

} // namespace nearfar::alloc
