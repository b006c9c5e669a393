// The end of an access, as an engine reports it.
#pragma once

#include <limits>

#include "sim/device.hpp"

namespace nearfar::sim {

constexpr Time never = std::numeric_limits<Time>::max();
constexpr std::uint64_t no_access = ~std::uint64_t{0}; ///< an invalid id

struct Completion {
  std::uint64_t id;
  Time at;
};

} // namespace nearfar::sim
