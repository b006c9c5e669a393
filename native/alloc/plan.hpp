// Plans: which allocations go to which tier (docs/formats/plan.md).
//
// A rule names a tier and conditions; the first rule that holds decides, otherwise the plan's
// default. What a rule says of the call site and the thread is worked out once for a site and
// thread, and kept in the thread's site cache; sizes, budgets and ratios are looked at each time.
//
// Thread safety  load_plan() by one thread, before any other function; the others by any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "alloc/cache.hpp"
#include "base/result.hpp"
#include "os/objects.hpp"

namespace nearfar::alloc {

inline constexpr std::size_t longest_chain = 16; ///< return addresses in a site

/// A return address as a plan has it: an object, by build-id or name, and the address in its file.
struct SiteFrame {
  unsigned char build_id[32] = {};
  std::uint8_t build_id_bytes = 0; ///< as many as the plan gives; 0: by name
  char name[64] = "";
  std::uint64_t offset = 0;
};

struct RuleAccounts;

struct Rule {
  int tier = 0;
  std::uint64_t least_bytes = 0, most_bytes = UINT64_MAX;
  const SiteFrame* chain = nullptr;              ///< innermost first
  std::uint8_t chain_length = 0;                 ///< 0: any site
  char thread[16] = "";                          ///< empty: any; a final '*' stands for anything
  std::int64_t budget = -1;                      ///< bytes in live blocks, -1 for none
  std::uint8_t budget_number = 0;                ///< among the rules with a budget
  double ratio = -1;                             ///< share of the bytes that come here, -1 for all
  std::atomic<std::int64_t> used{0};             ///< of the budget
  std::atomic<std::uint64_t> seen{0}, placed{0}; ///< bytes, for the ratio
  RuleAccounts* accounts = nullptr;              ///< where rules are counted

  bool holds_always() const {
    return least_bytes == 0 && most_bytes == UINT64_MAX && budget < 0 && ratio < 0;
  }
};

struct Plan {
  Rule* rules = nullptr;
  std::uint32_t rule_count = 0;
  int default_tier = 0;
  std::uint8_t longest = 0; ///< longest chain of any rule
  bool by_tables = false;   ///< chains are found by unwind tables, not by frame pointers
};
extern Plan plan;

/// Reads a plan and makes the tiers that it names and that are not there. Errors: bad_input with
/// the number of the line, not_found, no_permission, and those of tiers.
Status load_plan(const char* path);

/// Where a block goes.
struct Decision {
  int tier = 0;
  Rule* charged = nullptr; ///< whose budget it counts against
  std::size_t charged_bytes = 0;
};

/// The decision for `size` bytes at a call site; `frame` is the frame of the function that was
/// called, whose first word is the caller's frame pointer.
Decision decide(std::size_t size, const void* return_address, const void* frame);

/// To be called with what was allocated after a decision, nullptr too: counts the block's true size
/// against the budget until it is freed, or nothing if it went elsewhere.
void settle(const Decision& decision, void* block);

/// The rule whose budget has this number, counted from 1; nullptr if there is none.
Rule* rule_of_budget(int budget);

inline constexpr unsigned most_budgets = 100; ///< rules with a budget in a plan

} // namespace nearfar::alloc
