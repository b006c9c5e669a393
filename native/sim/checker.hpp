// A second opinion on commands: every rule of a device's timing, read off its figures, held against
// a record of commands. It shares no code with the engine that issued them.
//
// Thread safety  pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/command.hpp"

namespace nearfar::sim {

struct Violation {
  std::string rule; ///< the figure that was not kept, such as tRCD, or what was done to a bank
  Time at = 0;      ///< of the later command
  Time missing = 0; ///< how much too early it came
};

/// All violations, in the order of time. Commands may come in any order. Two rules of state take
/// the first look: a bank is activated only when closed, and read only in the row that is open.
std::vector<Violation> check_timing(const Device& device, std::span<const Command> commands);

} // namespace nearfar::sim
