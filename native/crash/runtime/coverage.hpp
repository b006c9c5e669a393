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

/// Bytes in a region that have changed since then and were not judged; with a `shadow` of the whole
/// pool, those that differ from it, which are put into it. Counted in words of 4.
std::uint64_t count_unseen(const RecordedRegion& region, char* shadow);

} // namespace nearfar::crash::runtime
