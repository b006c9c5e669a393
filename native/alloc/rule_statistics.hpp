// Blocks and mappings that each rule of a plan placed, and the nodes of their pages: for
// `nearfar run --check`.
//
// Enabled        only if NEARFAR_HMALLOC_STATS has `rules`: each rule for heap blocks then has a
//                budget, unlimited if the plan has none, so that each block has a rule.
// Pages          are sampled when a block is freed or memory is unmapped, and those of live blocks
//                and mappings at the end: some pages of each large block or mapping, and some of
//                the small blocks.
// Thread safety  enable_rule_statistics() by one thread; the others from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <nearfar/hmalloc.h>

#include "alloc/counter.hpp"

namespace nearfar::alloc {

class Allocator;
struct Plan;

struct RuleStatistics {
  SharedCounter allocations, allocated_bytes;
  SharedCounter elsewhere, elsewhere_bytes; ///< for the rule's tier, but spilled or failed
  std::atomic<std::int64_t> peak_bytes{0};  ///< maximum of live bytes
  SharedCounter freed;                      ///< blocks, to select those that are sampled
  SharedCounter pages, absent;              ///< pages that were sampled
  SharedCounter on_node[HM_MAX_NODES];
};

/// Counts rules from now on. Returns false if memory is exhausted.
bool enable_rule_statistics(Plan& plan);

// Functions of one rule; without effect if its statistics are nullptr.

/// A rule decided; `in_tier`: the block is in its tier.
void count_placed(RuleStatistics* statistics, bool in_tier, std::size_t bytes);
/// A block of the rule was resized and has so many bytes more.
void count_growth(RuleStatistics* statistics, std::size_t bytes);
/// The live bytes of a rule have grown to `bytes`.
void count_live(RuleStatistics* statistics, std::int64_t bytes);
/// Samples pages of a block that is about to be freed.
void sample_block(RuleStatistics* statistics, const void* block, std::size_t bytes);
/// Samples up to `most` pages of a mapping.
void sample_mapping(RuleStatistics* statistics, std::uintptr_t begin, std::size_t bytes,
                    std::size_t most);
/// Samples pages of all live blocks.
void sample_live_blocks(Allocator& allocator);

} // namespace nearfar::alloc
