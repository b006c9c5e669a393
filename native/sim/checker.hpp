// Checks recorded commands against all timing rules of a device. It shares no code with the engine
// that issues the commands: it derives the rules from the figures of the device.
//
// Refresh        Each refresh set of a rank requires one refresh per tREFI; the sets are refreshed
//                in turn. JEDEC allows a controller to postpone eight refreshes, and to issue eight
//                in advance (JESD79-3 and JESD79-4, "Refresh Command": at most 9 tREFI between two
//                refreshes). The exact engine postpones none: when a refresh is due, the set
//                accepts only precharges until it is issued.
//
// Thread safety  free functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/command.hpp"

namespace nearfar::sim {

struct Violation {
  std::string rule; ///< the violated figure, such as tRCD, or state rule
  Time at = 0;      ///< time of the violating command
  Time missing = 0; ///< time by which it is too early; tREFI: time since the refresh was due
};

constexpr unsigned jedec_refreshes = 8; ///< maximum postponed, and maximum issued in advance

/// Returns all violations in order of time. `commands` may be in any order. `postponed`: number of
/// refreshes that the controller may postpone.
/// State rules are checked, too: only a closed bank is activated, and only the open row is
/// accessed. An overdue refresh is reported once, at the next command of its set, and counts as
/// issued from then on.
std::vector<Violation> check_timing(const Device& device, std::span<const Command> commands,
                                    unsigned postponed = 0);

} // namespace nearfar::sim
