// Finds the near fraction of each site (0, 1/steps, ..., 1) with the least time of the program.
//
// Search         branch and bound. The bound of undecided sites: for each interval of the fraction
//                of their traffic in near memory both latencies have a minimum, and the least
//                stalls are those of a fractional knapsack.
// Capacity       the sizes of the near fractions fit near memory, those of the rest far memory.
// Ties           of equally fast placements, one with less near memory.
// Thread safety  functions of values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "interleave/placement_time.hpp"

namespace nearfar::interleave {

struct Solution {
  std::vector<unsigned> near_steps; ///< by site
  double time_ns = 0;
  Demand demand;
  bool exact = true; ///< false: the search was stopped, and a better one may exist
};

/// `max_nodes`: number of partial placements that are examined. `fixed`: demand of memory whose
/// place is not chosen; its bytes are not in the capacities. Errors: bad_input (amounts that are
/// not finite, no steps), no_space (the sites do not fit both memories together).
Result<Solution> solve(const PlacementTime& times, std::span<const Site> sites, unsigned steps,
                       std::uint64_t max_nodes, const Demand& fixed = {});

/// The demand of one placement, and `fixed`.
Demand demand_of(std::span<const Site> sites, std::span<const unsigned> near_steps, unsigned steps,
                 const Demand& fixed = {});

/// Whether a placement fits both memories.
bool fits(const PlacementTime& times, std::span<const Site> sites,
          std::span<const unsigned> near_steps, unsigned steps);

} // namespace nearfar::interleave
