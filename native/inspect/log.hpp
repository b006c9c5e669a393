// One log of a lane: its head, the chain of its extensions, and the entries that recovery would
// take.
//
// A redo log is applied forward where its checksum holds. An undo log is a row of snapshots, each
// with a checksum of its own over the entry and the log's generation; the first that fails ends it.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <vector>

#include "inspect/descriptor.hpp"

namespace nearfar::inspect {

enum class LogKind : unsigned char { internal, external, undo };

const char* name(LogKind kind);

enum class Operation : unsigned char { set, bit_and, bit_or, fill, copy };

/// One thing that recovery would do: `bytes` at `target`, from `value` or from the bytes at `data`.
struct LogEntry {
  Operation operation;
  Offset target;
  Offset bytes;
  std::uint64_t value; ///< of set, bit_and, bit_or
  Offset data;         ///< of fill and copy: where in the file
};

struct Log {
  LogKind kind;
  Offset offset;
  Offset capacity; ///< of its first part
  std::uint64_t generation;
  std::vector<Offset> extensions; ///< where further parts begin
  std::vector<LogEntry> entries;  ///< those that a reader of the log accepts, in order
  bool pending;                   ///< recovery would apply the entries
};

/// Logs that have been seen; an extension belongs to one log alone.
using Extensions = std::set<Offset>;

/// Reads one log that begins at `offset`. Damage is what the opener would refuse, hang on or crash
/// on: entries that leave their log or the pool, unknown operations, chains that leave the heap.
Log read_log(Window& window, const Descriptor& descriptor, LogKind kind, Offset offset,
             Extensions& seen, Findings& findings);

/// Applies a pending log to `patched`; false if its snapshots are larger than `room` bytes, which
/// is lowered by what was applied.
bool apply(const Log& log, PatchedView& patched, Offset& room);

} // namespace nearfar::inspect
