// Reading the file of the pool without a mapping.
//
// Thread safety  the caller holds the lock of the log.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sys/syscall.h>

#include "crash/runtime/kernel.hpp"
#include "crash/runtime/recording.hpp"

namespace nearfar::crash::runtime {

/// Calls visit(offset in the file, bytes, contents) for parts of a range of the file. It is read, not
/// mapped: in memory (tmpfs), a page that is mapped and looked at takes space. False if it cannot be
/// read.
template <class Visit>
bool read_parts(int fd, std::uint64_t offset, std::uint64_t bytes, const Visit& visit) {
  alignas(os::page_bytes) static char part[16 * os::page_bytes]; // under the lock of the log
  for (const std::uint64_t end = offset + bytes; offset < end;) {
    const std::uint64_t most = std::min<std::uint64_t>(sizeof part, end - offset);
    const auto got = system_call(SYS_pread64, fd, part, sizeof part, offset);
    if (got <= 0) return got == 0;
    visit(offset, std::min(most, static_cast<std::uint64_t>(got)), part);
    offset += std::min(most, static_cast<std::uint64_t>(got));
  }
  return true;
}

} // namespace nearfar::crash::runtime
