// Stores that the instrumented recorder did not see: of code that is not compiled for it, of the C
// library, of the kernel. They are found by what they left in the pool.
//
// Limits         at most 4,096 pages are compared, evenly spread. A pool of libpmemobj is not: that
//                library stores to it without calls of the recorder.
// Thread safety  none: callers hold the recorder's lock
#pragma once

#include <cstdint>

#include "crash/runtime/recording.hpp"

namespace nearfar::crash::runtime {

/// Keeps what these pages of the file hold. False if there is no memory for it.
bool begin_coverage(int fd, std::uint64_t pool_bytes);

/// Bytes in a region that have changed since then and were not judged; with a `shadow` of the whole
/// pool, those that differ from it. Counted in words of 4.
std::uint64_t count_unseen(const RecordedRegion& region, const char* shadow);

} // namespace nearfar::crash::runtime
