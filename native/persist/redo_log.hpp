// The redo log: one fence makes a transaction durable, and its changes are written back later.
//
// Operation      The log is an array of lines. commit() writes a record (record.hpp) behind the
//                last one, in whole lines by non-temporal stores, and fences: then the transaction
//                is durable. Only then are the changes applied in place, through the caches,
//                without a flush. When half the lines are used, all lines of the pool that records
//                have changed are flushed together, `start` moves past all records, and the next
//                one is written at the beginning.
// Numbers        an LSN counts lines and only grows: record n is on line n modulo the number of
//                lines, and no record extends beyond the last line. Going back to the beginning
//                skips the remaining numbers.
// Durability     1. the record (non-temporal stores, fence); 2. its changes, in any order, any
//                time later; 3. before `start` passes a record: its changes (flush, fence);
//                4. before a line of the log is used again: `start` (flush, fence).
// Recovery       recover() applies, from `start` on, record after record, until one is torn or of
//                an earlier round; then does 3 and 4 for all of them. After a crash during
//                recovery, it is repeated.
// Memory         a pool, or an image of one; links are offsets from its base.
// Thread safety  one thread at a time (the store's commit lock).
// Errors         commit(): no_space (a record larger than half the log; without an effect),
//                os_error (an msync failed). recover(): bad_input (a record that passes its
//                checksum refers to addresses outside of the pool).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "persist/dirty_lines.hpp"
#include "persist/write_back.hpp"
#include "poolformat/record.hpp"

namespace nearfar::persist {

using poolformat::RecordEntry;
using poolformat::RecordHead;

/// Memory of the log: `start` is the LSN of the oldest record that may be required.
struct LogPlace {
  std::byte* base = nullptr; ///< of the pool
  std::size_t pool_bytes = 0;
  std::uint64_t* start = nullptr;
  std::byte* lines = nullptr;
  std::size_t count = 0; ///< of lines, at least smallest_log_lines
};

inline constexpr std::size_t smallest_log_lines = 16;

/// Makes the change of one entry in the pool at `base`; does not write it back.
void apply_entry(const RecordEntry& entry, std::byte* base);

class RedoLog {
public:
  RedoLog(const LogPlace& place, WriteBack& write_back)
      : place_(place), write_back_(&write_back), tail_(*place.start), dirty_(place.count) {}

  /// Call it once, first. Returns the number of records that were applied.
  Result<std::size_t> recover();

  /// Makes a record durable, then applies it. `record` begins with room for its head and ends with
  /// room up to a whole line, both of which this fills; `bytes` counts head and entries. `sites`,
  /// if stores are recorded, has the line that requested each entry, in order; else null.
  Status commit(std::byte* record, std::uint32_t bytes, const Site* sites);

  /// Writes back the changes of all records and empties the log.
  void drain();
  /// Drains, then overwrites the log, which has copies of the written data.
  void scrub();

  std::uint64_t start() const { return *place_.start; }
  std::uint64_t tail() const { return tail_; }
  std::uint32_t largest_record() const {
    return static_cast<std::uint32_t>(place_.count * os::cache_line_bytes / 2);
  }

private:
  std::byte* line(std::uint64_t lsn) const {
    return place_.lines + lsn % place_.count * os::cache_line_bytes;
  }
  std::uint64_t first_of_next_round() const {
    return (tail_ + place_.count - 1) / place_.count * place_.count;
  }
  static std::uint64_t lines_of(std::uint32_t bytes) {
    return (bytes + os::cache_line_bytes - 1) / os::cache_line_bytes;
  }
  const std::byte* fetch(std::uint64_t lsn) const; ///< the record there; null if none
  void apply(const std::byte* record, std::uint32_t bytes, const Site* sites);
  void flush_dirty();

  LogPlace place_;
  WriteBack* write_back_;
  std::uint64_t tail_;
  DirtyLines dirty_; ///< what records before the tail changed
};

} // namespace nearfar::persist
