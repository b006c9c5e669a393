// The control region of the reader, and a slot of it for this process.
//
// Untrusted      the reader may have ended, and another process may have its number: a file is used
//                only if it has the size and the first bytes of a log.
// Thread safety  open_control() once; claim_slot() by one thread of a process at a time.
#pragma once

#include <cstddef>

#include "alloclog/format.hpp"

namespace nearfar::alloclog {

/// Maps the control region, which forked children keep. `path` is /proc/PID/fd/N.
bool open_control(const char* path);

struct ClaimedSlot {
  std::byte* memory = nullptr; ///< nullptr: none
  SlotUse use = 0;
  std::uint32_t clock_period_ns = 0; ///< 0: no clock
};

/// Claims a ready slot and maps it. `parent`: the slot of the process that this one was forked
/// from, or 0. A failure is counted in the control region.
ClaimedSlot claim_slot(SlotUse parent);

} // namespace nearfar::alloclog
