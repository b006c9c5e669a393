// What it costs to make stores durable: by instruction, size, and number of lines under one fence.
//
// Thread safety  one PersistenceProbe a thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/histogram.hpp"
#include "base/result.hpp"
#include "kernels/persist.hpp"
#include "os/usage.hpp"
#include "tier/mapping.hpp"

namespace nearfar::probe {

struct PersistSample {
  double fence_ns = 0; ///< one fence with all the blocks under it
  std::size_t fences = 0;
  os::Usage usage;
};

/// Repeated durable stores to one place, each timed by itself.
struct OverwriteRun {
  Histogram ticks;
  double tick_ns = 0;
  double stall_ns = 0;       ///< median of the stalls, 0 if there was none
  std::size_t stalls = 0;    ///< writes that took over 20 times the median
  double writes_between = 0; ///< mean number of writes from one stall to the next
  os::Usage usage;
};

class PersistenceProbe {
public:
  static Result<PersistenceProbe> create(const tier::Spec& spec, std::size_t bytes, int cpu);

  /// Random blocks of `block_bytes`, `blocks_per_fence` of them under each fence, for about
  /// `nanoseconds`. Errors: bad_input (sizes), unsupported (the processor lacks the instruction),
  /// failed_check (stores are missing from memory).
  Result<PersistSample> sample(os::Persist how, std::size_t block_bytes,
                               std::size_t blocks_per_fence, std::uint64_t nanoseconds);

  /// The same with msync of each block's pages in place of flush and fence: for file: tiers.
  Result<PersistSample> sample_msync(std::size_t block_bytes, std::uint64_t nanoseconds);

  /// `writes` durable stores of one block at the start of the mapping.
  Result<OverwriteRun> overwrite(os::Persist how, std::size_t block_bytes, std::size_t writes);

private:
  PersistenceProbe(tier::Mapping mapping, int cpu);
  Result<kernels::PersistLoop> loop_for(os::Persist how, std::size_t block_bytes);

  tier::Mapping mapping_;
  int cpu_;
  std::uint64_t stamp_ = 0;
  std::uint64_t state_ = 1;
};

} // namespace nearfar::probe
