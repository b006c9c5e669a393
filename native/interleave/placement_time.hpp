// Time of a program whose sites are near, far, or interleaved, under the load that it makes itself.
//
//     T = base + Σ_i [ x_i · near_i · L_near(b_near) / L_near(0)
//                    + (1 - x_i) · far_i · L_far(b_far) / L_far(0) ]
//     b_near = (Σ_i x_i · bytes_i) / T + background,  b_far likewise;  b <= peak of the tier
//
// x_i is the fraction of site i in near memory; near_i and far_i are its stalls when all of it is
// there and the memory is idle. Latencies rise with bandwidth, and bandwidths fall with T, so that
// the least T that satisfies both is a fixed point. A tier that is at its peak stretches T.
//
// Limits         accesses of a site are spread evenly over its pages; a program's load is even over
//                its time.
// Thread safety  values; evaluation is const.
#pragma once

#include <span>
#include <vector>

#include "interleave/loaded_latency.hpp"

namespace nearfar::interleave {

struct Site {
  double near_stall_ns = 0; ///< wall time, all of it near and idle
  double far_stall_ns = 0;
  double read_bytes = 0; ///< of memory traffic
  double write_bytes = 0;
  double size_bytes = 0;
};

/// Traffic of other programs, in bytes/s.
struct Background {
  double reads = 0;
  double writes = 0;
};

struct Tier {
  LoadedLatency latency;
  Background background;
  double capacity_bytes = 0;
};

/// Traffic and stalls of a placement on the tiers: sums over sites.
struct Demand {
  double near_stall_ns = 0;
  double far_stall_ns = 0;
  double near_reads = 0; ///< bytes
  double near_writes = 0;
  double far_reads = 0;
  double far_writes = 0;

  /// Adds a site of which the fraction `near` is near.
  void add(const Site& site, double near);
};

/// State of one tier while the program runs.
struct TierState {
  double read_share = 1;
  double bandwidth_bytes_per_s = 0; ///< with the background
  double latency_ns = 0;
  double utilization = 0; ///< of the peak
};

class PlacementTime {
public:
  /// `base_ns`: wall time that no placement changes. Errors: bad_input (negative or infinite
  /// numbers; a background that leaves no bandwidth).
  static Result<PlacementTime> create(double base_ns, Tier near, Tier far);

  /// Wall time in ns, to a relative 1e-12.
  double time_ns(const Demand& demand) const;
  TierState near_state(const Demand& demand, double time_ns) const;
  TierState far_state(const Demand& demand, double time_ns) const;

  double base_ns() const { return base_ns_; }
  const Tier& near() const { return near_; }
  const Tier& far() const { return far_; }

private:
  PlacementTime(double base_ns, Tier near, Tier far)
      : base_ns_(base_ns), near_(std::move(near)), far_(std::move(far)) {}

  /// base + stalls if the run takes `time_ns`; infinity if a tier would be above its peak.
  double implied_ns(const Demand& demand, double time_ns) const;

  double base_ns_;
  Tier near_, far_;
};

} // namespace nearfar::interleave
