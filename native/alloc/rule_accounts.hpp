// What each rule of a plan placed, and where the kernel has put it: for `nearfar run --check`.
//
// On             only where NEARFAR_HMALLOC_STATS asks for rules: every rule then has a budget,
// without
//                limit where the plan gives none, so that each block knows its rule.
// Pages          are looked at when a block is freed, and at the end those of what still lives; of
//                large blocks some pages, of small ones some blocks.
// Thread safety  open_rule_accounts() by one thread; the others by any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <nearfar/hmalloc.h>

#include "alloc/counter.hpp"

namespace nearfar::alloc {

struct Rule;

struct RuleAccounts {
  SharedCounter allocations, allocated_bytes;
  SharedCounter elsewhere, elsewhere_bytes; ///< meant for the rule's tier, and spilled or failed
  std::atomic<std::int64_t> peak_bytes{0};  ///< most that lived at once
  SharedCounter freed;                      ///< blocks, for choosing which are looked at
  SharedCounter pages, absent;              ///< that were looked at
  SharedCounter on_node[HM_MAX_NODES];
};

/// Has rules counted from now on. False if there is no memory for it.
bool open_rule_accounts();

/// A rule decided: `block` is in its tier (`here`), or not.
void count_placed(Rule& rule, bool here, std::size_t bytes);
/// A block of the rule was resized, and has so many bytes more.
void count_grown(Rule& rule, std::size_t bytes);
/// The live bytes of a rule have grown to `bytes`.
void count_alive(Rule& rule, std::int64_t bytes);
/// Looks at pages of a block that is about to be freed.
void look_at_pages(Rule& rule, const void* block, std::size_t bytes);
/// The same for all blocks that live.
void look_at_living();

} // namespace nearfar::alloc
