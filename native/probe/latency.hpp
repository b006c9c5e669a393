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

struct TimedLoads {
  Histogram ticks;
  double tick_ns = 0;
  std::uint64_t own_ticks = 0; ///< of the timer, already subtracted
  os::Usage usage;
};

/// A mapping of one tier on which chases of any size up to its own are run, on one processor.
class LatencyProbe {
public:
  /// Maps and touches `max_region_bytes` of the tier from `cpu`. Errors: as tier::map, and
  /// failed_check where the pages are not those asked for.
  static Result<LatencyProbe> create(const tier::Spec& spec, std::size_t max_region_bytes, int cpu);

  /// How long the first touch of all pages took.
  std::uint64_t touch_ns() const { return touch_ns_; }

  /// Links a new cycle over all lines of the first `region_bytes`: blocks of `block_bytes` (a
  /// multiple of 64) in a random order, the lines of a block in turn; blocks of 16 or 32 bytes have
  /// several to a line, which a round visits as often. Then walks it until caches and TLBs are in
  /// their steady state, at most `warm_steps` steps: a region beyond every cache is as warm as it
  /// gets long before a full round.
  Status prepare(std::size_t region_bytes, std::size_t block_bytes, std::uint64_t seed,
                 std::size_t warm_steps);

  /// Walks on from where the last sample ended, for at least one step and about `nanoseconds`.
  /// Fails (failed_check) where the chase did not end on the node it had to.
  Result<LatencySample> sample(std::uint64_t nanoseconds);

  /// Walks the cycle from `chains` (1 to 16) evenly spaced nodes at once, about `nanoseconds` long.
  /// The latency is the time over all loads of all chains: what a load costs at that parallelism.
  Result<LatencySample> sample_chains(std::size_t chains, std::uint64_t nanoseconds);

  /// Times `steps` loads one by one; the timer's own ticks are subtracted. Values are ticks.
  Result<TimedLoads> time_each(std::size_t steps);

private:
  LatencyProbe(tier::Mapping mapping, int cpu, std::uint64_t touch_ns);

  tier::Mapping mapping_;
  int cpu_;
  std::uint64_t touch_ns_;
  std::vector<std::uint32_t> order_;
  const kernels::ChaseNode* node_at(std::size_t rank) const;
  std::size_t steps_in(std::uint64_t nanoseconds) const; ///< at the pace of the last walk

  std::size_t block_bytes_ = 0;
  std::size_t nodes_ = 0; ///< of the cycle
  const kernels::ChaseNode* at_ = nullptr;
  double step_ns_ = 0; ///< of the last walk: sets the length of the next
};

} // namespace nearfar::probe
