// One command on a channel's bus, as the exact engine issues it and the checker judges it.
#pragma once

#include "sim/device.hpp"

namespace nearfar::sim {

/// The last three are of a rank: it powers down, refreshes itself, or ends either state.
enum class Act : unsigned char {
  activate,
  read,
  write,
  precharge,
  refresh,
  power_down,
  self_refresh,
  wake
};

struct Command {
  Time at = 0;
  Act act = Act::activate;
  bool automatic = false; ///< a precharge that came with a column command: not on the bus
  std::uint32_t channel = 0;
  std::uint32_t rank = 0;
  std::uint32_t group = 0;
  std::uint32_t bank =
      0; ///< of the channel, as in Place; of a refresh, one that it refreshes; of a
         ///< command of a rank, its first
  std::uint64_t row = 0;
};

} // namespace nearfar::sim
