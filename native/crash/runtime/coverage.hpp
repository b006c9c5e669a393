// Stores that were not seen: of another process, of system calls that are not recorded, and, with the
// instrumented recorder, of code that is not compiled for it. They are found by what they left in the
// pool.
//
// Limits         at most 4,096 pages are compared, evenly spread. With the instrumented recorder, a
//                pool of libpmemobj is not: that library leaves words unflushed itself.
// Thread safety  none: callers hold the recorder's lock
#pragma once

#include <cstdint>

#include "crash/runtime/recording.hpp"

namespace nearfar::crash::runtime {

/// Keeps what these pages of the file hold. False if there is no memory for it.
bool begin_coverage(int fd, std::uint64_t pool_bytes);

/// A store was seen: bytes at an offset of the pool. No-op where a shadow of the whole pool is kept.
void keep_seen(std::uint64_t offset, std::size_t bytes, const char* now);

/// Bytes in a region that differ from what was seen: from the `shadow` of the whole pool, which then
/// has them, or from the pages that are kept. Counted in words of 4.
std::uint64_t count_unseen(const RecordedRegion& region, char* shadow);

} // namespace nearfar::crash::runtime
