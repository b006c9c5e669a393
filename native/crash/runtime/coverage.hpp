// Stores that were not seen: of another process, of system calls that are not recorded, and, with the
// instrumented recorder, of code that is not compiled for it. They are found by what they left in the
// pool.
//
// Limits         of a larger pool, 2,048 to 4,096 pages are compared, evenly spread. With the instrumented recorder,
//                what libpmemobj flushes counts as seen; of what it leaves unflushed in its pool,
//                lines are compared that are marked as of the program.
// Thread safety  none: callers hold the recorder's lock
#pragma once

#include <cstdint>

#include "crash/runtime/recording.hpp"

namespace nearfar::crash::runtime {

/// Keeps what these pages of the file hold. False if there is no memory for it.
bool begin_coverage(int fd, std::uint64_t pool_bytes);
/// The same again: all that was stored until now is seen, and the pool may be one of libpmemobj now.
bool keep_file(int fd);

/// A store was seen: bytes at an offset of the pool. No-op where a shadow of the whole pool is kept.
void keep_seen(std::uint64_t offset, std::size_t bytes, const char* now);

/// A store to this place comes soon: what is kept of it is loaded into the caches meanwhile.
void expect_store(std::uint64_t offset);
/// Whether the pool has parts of libpmemobj, which stores there without callbacks.
bool has_own_parts();
/// The program has stored to these bytes, flushed, logged or allocated them.
void mark_as_of_program(std::uint64_t offset, std::size_t bytes);

/// Bytes of a range that differ from the pages that are kept, which then have them. 0 where a shadow of
/// the whole pool is kept.
std::uint64_t count_unseen(std::uint64_t offset, std::size_t bytes, const char* now);

/// Bytes in a region that differ from what was seen: from the `shadow` of the whole pool, which then
/// has them, or from the pages that are kept. Counted in words of 4.
std::uint64_t count_unseen(const RecordedRegion& region, char* shadow);

} // namespace nearfar::crash::runtime
