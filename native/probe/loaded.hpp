// Latency under load: one thread runs a pointer chase (the chaser) while others cause paced
// traffic.
//
// Offered and achieved load are separate: each traffic thread has a target rate, and the bytes that
// it moved while the chaser ran are counted. No hardware counters are used.
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
  double latency_ns = 0;                ///< of a load of the chaser
  double traffic_bytes_per_s = 0;       ///< achieved by all traffic threads together
  double chaser_bytes_per_s = 0;        ///< one line for each load of the chaser
  std::vector<kernels::Member> members; ///< the chaser first
};

class LoadedProbe {
public:
  /// Maps `chase_bytes` for the chaser and `traffic_bytes` for each traffic thread.
  static Result<LoadedProbe> create(const tier::Spec& spec, std::size_t chase_bytes,
                                    std::size_t traffic_bytes, int chaser_cpu,
                                    std::span<const int> traffic_cpus, std::uint64_t seed);

  /// Runs for about `nanoseconds`. The target rate of each traffic thread is `offered_bytes_per_s`;
  /// 0 means no traffic, infinity no limit. Error: failed_check if the chase or an access failed.
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
