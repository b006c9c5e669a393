// Load latency of a tier by the size of the region that is walked.
//
// Thread safety  one LatencyProbe a thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "kernels/chase.hpp"
#include "os/usage.hpp"
#include "tier/mapping.hpp"

namespace nearfar::probe {

struct LatencySample {
  double latency_ns = 0; ///< a load, mean over `steps`
  std::size_t steps = 0;
  os::Usage usage;
};

/// A mapping of one tier on which chases of any size up to its own are run, on one processor.
class LatencyProbe {
public:
  /// Maps and touches `max_region_bytes` of the tier from `cpu`. Errors: as tier::map, and
  /// failed_check where the pages are not those asked for.
  static Result<LatencyProbe> create(const tier::Spec& spec, std::size_t max_region_bytes, int cpu);

  /// Links a new random cycle over the first `region_bytes`, one node in each `block_bytes` (16 to
  /// the region), and walks it until caches and TLBs are in their steady state, at most
  /// `warm_steps` steps: a region beyond every cache is as warm as it gets long before a full
  /// round.
  Status prepare(std::size_t region_bytes, std::size_t block_bytes, std::uint64_t seed,
                 std::size_t warm_steps);

  /// Walks on from where the last sample ended, for at least one step and about `nanoseconds`.
  /// Fails (failed_check) where the chase did not end on the node it had to.
  Result<LatencySample> sample(std::uint64_t nanoseconds);

private:
  LatencyProbe(tier::Mapping mapping, int cpu);

  tier::Mapping mapping_;
  int cpu_;
  std::vector<std::uint32_t> order_;
  std::uint32_t blocks_ = 0;
  const kernels::ChaseNode* at_ = nullptr;
  double step_ns_ = 0; ///< of the last walk: sets the length of the next
};

} // namespace nearfar::probe
