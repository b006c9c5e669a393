// Statistics of tiers and threads, summed when they are read, and written as text.
//
// A counter exists per stack (hot path), per class (uncached), per tier (large), and in past_counts
// (exited threads); read_stats() adds all four.
//
// Thread safety  any thread; never in a signal handler.
#pragma once

#include <array>
#include <cstdint>
#include <nearfar/hmalloc.h>

#include "base/result.hpp"

namespace nearfar::alloc {

class Allocator;

/// Returns the bytes of large blocks, which live_bytes includes.
std::uint64_t read_stats(Allocator& allocator, unsigned tier, hm_tier_stats& stats);

struct NamedStatistic {
  const char* key;
  std::uint64_t value;
};
/// The statistics of a tier with the keys that write_stats() writes.
std::array<NamedStatistic, 12> named_statistics(Allocator& allocator, unsigned tier);

/// A statistic by its name, as of hm_ctl(). Errors: not_found, unsupported.
Result<std::uint64_t> find_statistic(Allocator& allocator, const char* name);

/// Writes the statistics of all tiers and threads: a line `hmalloc-stats 1`, then `key value`
/// lines. Returns an errno, 0 for success.
int write_stats(Allocator& allocator, int fd);

/// Writes the statistics of process_allocator when the process exits or receives a signal: `when`
/// is "exit" or "signal:NUMBER", and "rules" to count what each rule of a plan places, separated by
/// commas; `file` is empty for standard error. Errors: bad_input.
Status schedule_statistics(const char* when, const char* file);

} // namespace nearfar::alloc
