// Numbers for places in the program, which the log names once.
//
// Thread safety  the lock of the log is held (lock.hpp).
#pragma once

#include <cstdint>
#include <optional>

#include "storelog/log_file.hpp"

namespace nearfar::crash::runtime {

struct SiteNumber {
  std::uint32_t number;
  bool of_library; ///< of libpmem or libpmemobj, or called by one

  friend bool operator==(const SiteNumber&, const SiteNumber&) = default;
};

/// Where an event happens: the code, and the calls that led there. `code` is a return address, or null
/// if unknown. To be called where it happens, for the stack is looked at.
SiteNumber site_of(storelog::LogWriter& writer, const void* code);

/// A module was unloaded: its addresses can be those of other code. The same module, loaded again, has
/// the same sites. The lock need not be held.
void forget_sites();

} // namespace nearfar::crash::runtime
