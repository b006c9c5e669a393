// A lower bound of the times of all completions of a partial placement; part of the solver.
#pragma once

#include <span>
#include <vector>

#include "interleave/placement_time.hpp"

namespace nearfar::interleave {

/// Sums over undecided sites do not change while a search descends, so they are kept by depth.
class LowerBound {
public:
  LowerBound(const PlacementTime& times, std::span<const Site> sites);

  /// Whether every placement that extends `decided` (of the sites before `next`, whose near part
  /// has `near_bytes`) takes at least `limit_ns`.
  bool reaches(const Demand& decided, double near_bytes, std::size_t next, double limit_ns) const;

private:
  struct Latencies {
    double near_factor, far_factor; ///< of the idle latencies
  };

  Latencies lowest(double near_bytes, double far_bytes, double limit_ns) const;
  double stalls_by_traffic(std::size_t next, Latencies at, double least, double most) const;
  double stalls_by_size(std::size_t next, Latencies at, double room) const;

  const PlacementTime& times_;
  std::span<const Site> sites_;
  std::vector<double> traffic_left_; ///< bytes of the sites from an index on
  mutable std::vector<std::size_t> order_;
};

} // namespace nearfar::interleave
