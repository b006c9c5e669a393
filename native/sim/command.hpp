// A command of a channel: issued by the exact engine, verified by the checker.
#pragma once

#include "sim/device.hpp"

namespace nearfar::sim {

/// The last three change the power state of a rank; `wake` ends power-down or self-refresh.
enum class CommandType : unsigned char {
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
  CommandType type = CommandType::activate;
  bool automatic = false; ///< auto-precharge of a column command: does not occupy the command bus
  std::uint32_t channel = 0;
  std::uint32_t rank = 0;
  std::uint32_t group = 0;
  /// Number in the channel, as in DramAddress. Refresh: a bank of the set. Power states: the first bank
  /// of the rank.
  std::uint32_t bank = 0;
  std::uint64_t row = 0;
};

} // namespace nearfar::sim
