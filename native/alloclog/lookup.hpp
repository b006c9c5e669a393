// The site of an address, in the log of a process and those of its parents.
//
// Fork           a forked child has its parent's blocks: if its own log has no entry, the current
//                one of the parent is used. A block that the parent has freed or allocated since
//                the fork is therefore found as in the parent.
// Precision      an address behind the end of a small block is assigned to that block, up to 32
//                KiB, if no other begins in between.
// Thread safety  any thread.
#pragma once

#include <optional>
#include <span>

#include "alloclog/slot_file.hpp"

namespace nearfar::alloclog {

enum class Blocks : std::uint8_t { in_use, also_freed };

struct FoundEntry {
  std::size_t log; ///< index into the logs: whose site it is
  Entry site;
};

/// `logs`: of the process, its parent, and so on.
std::optional<FoundEntry> look_up(std::span<const SlotFile* const> logs, std::uint64_t address,
                                  Blocks which = Blocks::in_use);

} // namespace nearfar::alloclog
