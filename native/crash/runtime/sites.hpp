// Numbers for places in the program, which the log names once.
//
// Thread safety  the lock of the log is held (recording.cpp).
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

/// `code` is a return address, or null if unknown.
SiteNumber site_of(storelog::LogWriter& writer, const void* code,
                   std::optional<SiteNumber> caller = {});
/// The call that led to a store of a library; none for a store of the program.
std::optional<SiteNumber> caller_site(storelog::LogWriter& writer, const void* code);

} // namespace nearfar::crash::runtime
