// Statistics of tiers and threads, summed when they are read, and written as text.
//
// Allocations and frees are counted in five places: stacks, past_counts() (the stacks of threads
// that have ended), classes (blocks without a stack), tiers (large blocks) and arenas. Free blocks are
// counted in classes and stacks, failures of heaps in arenas; all other counters are in TierHeap.
//
// Thread safety  any thread; never in a signal handler.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nearfar/hmalloc.h>

#include "base/result.hpp"

namespace nearfar::alloc {

class Allocator;

/// Fills `stats`. Returns the part of live_bytes that is in large blocks.
std::uint64_t read_stats(Allocator& allocator, unsigned tier, hm_tier_stats& stats);

/// Copies statistics to the struct of a program that was built with this header, an older or a newer
/// one: `bytes` is its size there.
void copy_stats(const hm_tier_stats& from, hm_tier_stats* to, std::size_t bytes);
/// Of the struct in version 1.0.
constexpr std::size_t first_stats_bytes =
    offsetof(hm_tier_stats, capacity_bytes) + sizeof(std::uint64_t);

struct NamedStatistic {
  const char* key;
  std::uint64_t value;
};
/// The statistics of a tier with the keys that write_stats() writes, but for the weights of nodes.
std::array<NamedStatistic, 12> named_statistics(Allocator& allocator, unsigned tier);

/// A statistic by its name, as of hm_ctl(). Errors: not_found, unsupported.
Result<std::uint64_t> find_statistic(Allocator& allocator, const char* name);

/// Writes the statistics of all tiers and threads: a line `hmalloc-stats 1`, then `key value`
/// lines. Returns an errno, 0 for success.
int write_stats(Allocator& allocator, int fd);

/// Writes the statistics of process_allocator when the process exits or receives a signal. `when`
/// is a list of "exit", "signal:NUMBER" and "rules" (counts what each rule of a plan places),
/// separated by commas; `file` is empty for standard error. Errors: bad_input.
Status schedule_statistics(const char* when, const char* file);

} // namespace nearfar::alloc
