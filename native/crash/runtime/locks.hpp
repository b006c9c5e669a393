// Locks that lie in the pool: what they hold means nothing after a crash, so it is not judged, and is no
// store that was missed.
//
// Thread safety  none but report_lock(): callers hold the recorder's lock
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "crash/runtime/judging.hpp"

namespace nearfar::crash::runtime {

/// A thread uses a lock, a semaphore, a condition variable or a barrier; no-op if it is not in the pool.
void report_lock(const volatile void* at, std::size_t bytes, const void* code);

struct LockRange {
  std::uint64_t offset, bytes; ///< in the pool
};
/// The locks in the order of their first use. Others are only known to the judge, if there is one.
struct LockRanges {
  static constexpr int most = 1024;
  LockRange range[most];
  int count = 0;
};
extern LockRanges lock_ranges;

/// Calls visit(offset in the pool, bytes) for the part of each lock that lies in a range of the pool.
template <class Visit>
void for_each_lock(std::uint64_t offset, std::uint64_t bytes, const Visit& visit) {
  for (int i = 0; i < lock_ranges.count; ++i) {
    const LockRange& lock = lock_ranges.range[i];
    const std::uint64_t first = std::max(offset, lock.offset);
    const std::uint64_t last = std::min(offset + bytes, lock.offset + lock.bytes);
    if (first < last) visit(first, last - first);
  }
  if (judge() != nullptr) judge()->for_each_never_durable(offset, bytes, visit);
}

} // namespace nearfar::crash::runtime
