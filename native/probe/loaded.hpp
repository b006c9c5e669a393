// Latency under load: one chaser against paced traffic, without hardware counters.
//
// Offered and achieved load are reported separately: traffic threads are asked for a rate, and
// the bytes they really moved while the chaser ran are counted.
//
// Thread safety  one LoadedProbe a thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "kernels/chase.hpp"
#include "probe/access.hpp"

namespace nearfar::probe {

struct LoadedSample {
  double latency_ns = 0;                ///< a load of the chaser
  double traffic_bytes_per_s = 0;       ///< achieved by all traffic threads together
  double chaser_bytes_per_s = 0;        ///< a line for each of its loads
  std::vector<kernels::Member> members; ///< the chaser first
};

class LoadedProbe {
public:
  /// Maps `chase_bytes` for the chaser and `traffic_bytes` for each traffic processor.
  static Result<LoadedProbe> create(const tier::Spec& spec, std::size_t chase_bytes,
                                    std::size_t traffic_bytes, int chaser_cpu,
                                    std::span<const int> traffic_cpus, std::uint64_t seed);

  /// Runs for about `nanoseconds`. Each traffic thread is asked for `offered_bytes_per_s`; 0 means
  /// none, infinity as much as it can. Errors: failed_check as the chase and the accesses.
  Result<LoadedSample> run(const AccessPattern& pattern, double offered_bytes_per_s,
                           std::uint64_t nanoseconds, std::uint64_t seed);

private:
  LoadedProbe(tier::Mapping chase, tier::Mapping traffic, std::vector<int> cpus);

  tier::Mapping chase_;
  tier::Mapping traffic_;
  std::vector<int> cpus_; ///< the chaser's first
  std::size_t lines_ = 0;
  const kernels::ChaseNode* at_ = nullptr;
};

} // namespace nearfar::probe
