// An independent check of recorded commands against every rule of a device's timing. It reads the
// rules from the device's figures and shares no code with the engine that issued the commands.
//
// Refresh        each set of banks of a rank owes a refresh each tREFI; the sets take turns from
//                time 0 on. JEDEC allows controllers to
//                postpone eight (JESD79-3 and JESD79-4, "Refresh Command": at most 9 tREFI between
//                two refreshes), and as many issued in advance count. The exact engine postpones
//                none: from k * tREFI on, the rank takes only precharges until refresh k.
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
  Time missing = 0; ///< how much too early it came; for tREFI: how long the refresh is overdue
};

constexpr unsigned jedec_refreshes = 8; ///< that may be postponed, and that count in advance

/// All violations, in the order of time. Commands may come in any order. Two rules of state take
/// the first look: a bank is activated only when closed, and read only in the row that is open.
/// `postponed` is the number of refreshes that the controller may owe a rank. An overdue refresh is
/// reported once, at the first command of the rank after it, and counts as issued from there on.
std::vector<Violation> check_timing(const Device& device, std::span<const Command> commands,
                                    unsigned postponed = 0);

} // namespace nearfar::sim
