// Cost of durable stores by flush instruction, block size, and number of blocks per fence.
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
  double fence_ns = 0; ///< time of all blocks and their fence
  std::size_t fences = 0;
  os::Usage usage;
};

/// Repeated durable stores to one block, each of them timed.
struct OverwriteRun {
  Histogram ticks;
  double tick_ns = 0;
  double stall_ns = 0;       ///< median time of the stalls; 0 without stalls
  std::size_t stalls = 0;    ///< number of writes that took over 20 times the median
  double writes_between = 0; ///< mean number of writes from one stall to the next
  os::Usage usage;
};

class PersistenceProbe {
public:
  static Result<PersistenceProbe> create(const tier::Spec& spec, std::size_t bytes, int cpu);

  /// Stores and flushes random blocks of `block_bytes`, with a fence after each `blocks_per_fence`,
  /// for about `nanoseconds`. Errors: bad_input (sizes), unsupported (the CPU lacks the
  /// instruction), failed_check (stores are missing from memory).
  Result<PersistSample> sample(os::Persist how, std::size_t block_bytes,
                               std::size_t blocks_per_fence, std::uint64_t nanoseconds);

  /// The same for file: tiers, with msync of each block's pages instead of flush and fence.
  Result<PersistSample> sample_msync(std::size_t block_bytes, std::uint64_t nanoseconds);

  /// Stores the first block of the mapping durably, `writes` times.
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
