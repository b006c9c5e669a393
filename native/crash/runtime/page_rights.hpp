// To which pages of the pool the program may store, by its own calls of mprotect(): the recorder itself makes
// them read-only (faults.cpp).
//
// Thread safety  keep_watch(); for the others, callers hold the recorder's lock or look at a region that
//                stays.
#pragma once

#include "crash/runtime/recording.hpp"

namespace nearfar::crash::runtime {

inline std::size_t page_count(std::size_t bytes) {
  return (bytes + os::page_bytes - 1) / os::page_bytes;
}

/// How many of `bytes` from an offset of the region on are in pages with the same right.
std::size_t pages_of_same_right(const RecordedRegion& region, std::size_t into, std::size_t bytes);
inline std::size_t same_right(const RecordedRegion& region, const char* at, std::size_t bytes) {
  const auto into = static_cast<std::size_t>(at - region.start);
  const std::size_t left = region.bytes - into;
  if (region.denied == nullptr) return bytes < left ? bytes : left;
  return pages_of_same_right(region, into, bytes);
}
/// For mprotect(): knows what the program may store to, and takes the right to do so away again.
void keep_watch(void* start, std::size_t bytes, int protection);
/// Gives the kernel this protection of all pages that the program may store to.
void protect_writable(const RecordedRegion& region, int protection);
/// Where the kernel can write that many bytes of the pool, as read() does; null if they are not in
/// one mapping of it.
char* writable(void* at, std::size_t bytes);

} // namespace nearfar::crash::runtime
