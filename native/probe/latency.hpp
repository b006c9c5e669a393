// Load latency of a tier as a function of the size of the region that a pointer chase walks.
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
  double latency_ns = 0; ///< mean time of a load
  std::size_t steps = 0; ///< number of loads
  os::Usage usage;
};

struct TimedLoads {
  Histogram ticks;
  double tick_ns = 0;
  std::uint64_t own_ticks = 0; ///< overhead of the timer, already subtracted
  os::Usage usage;
};

/// A mapping of one tier, and pointer chases over any region of it, on one CPU.
class LatencyProbe {
public:
  /// Maps and touches `max_region_bytes` of the tier from `cpu`. Errors: those of tier::map, and
  /// failed_check if the pages do not have the requested size.
  static Result<LatencyProbe> create(const tier::Spec& spec, std::size_t max_region_bytes, int cpu);

  /// Processor time of mapping the tier and of the first touch of all pages.
  std::uint64_t touch_ns() const { return touch_ns_; }

  /// Links a new cycle over the first `region_bytes`. It visits blocks of `block_bytes` (16, 32 or
  /// a multiple of 64) in random order, and the lines of a block in address order. Then walks two
  /// rounds, but at most `warm_steps` steps, so that caches and TLBs reach their steady state. If
  /// the region exceeds every cache, they reach it long before the end of a round.
  Status prepare(std::size_t region_bytes, std::size_t block_bytes, std::uint64_t seed,
                 std::size_t warm_steps);

  /// Continues the walk for about `nanoseconds`, at least one step. Error: failed_check if the
  /// chase does not end on the expected node.
  Result<LatencySample> sample(std::uint64_t nanoseconds);

  /// Walks the cycle concurrently from `chains` (1 to 16) evenly spaced nodes for about
  /// `nanoseconds`. The latency is the time divided by the number of loads of all chains.
  Result<LatencySample> sample_chains(std::size_t chains, std::uint64_t nanoseconds);

  /// As sample_chains() with 16 chains, with instructions between the loads: kernels::chase_spaced.
  /// Error: bad_input for a number of instructions that it does not support.
  Result<LatencySample> sample_spaced(kernels::Spacing spacing, std::size_t instructions,
                                      std::uint64_t nanoseconds);

  /// Times `steps` loads one by one; the timer's own ticks are subtracted. Values are ticks.
  Result<TimedLoads> time_each(std::size_t steps);

private:
  LatencyProbe(tier::Mapping mapping, int cpu, std::uint64_t touch_ns);

  tier::Mapping mapping_;
  int cpu_;
  std::uint64_t touch_ns_;
  std::vector<std::uint32_t> order_;
  const kernels::ChaseNode* node_at(std::size_t rank) const;
  std::size_t steps_in(std::uint64_t nanoseconds) const; ///< estimated from the last walk
  /// Walks from `chains` evenly spaced nodes: walk(at, steps) makes `steps` loads of each.
  template <class Walk>
  Result<LatencySample> sample_concurrent(std::size_t chains, std::uint64_t nanoseconds,
                                          const Walk& walk);

  std::size_t block_bytes_ = 0;
  std::size_t nodes_ = 0;                  ///< number of nodes in the cycle
  const kernels::ChaseNode* at_ = nullptr; ///< where the next walk starts
  double step_ns_ = 0;                     ///< time of a step in the last walk
};

} // namespace nearfar::probe
