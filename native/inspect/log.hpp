// One log of a lane: its head, the chain of its extensions, and the entries that recovery would
// apply.
//
// A redo log is applied forward if its checksum is right. An undo log is a sequence of snapshots,
// each with a checksum over the entry and the log's generation; the first wrong one ends it.
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

/// One change by recovery: `bytes` at `target`, from `value` or from the bytes at `data`.
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

/// Extensions that were read; each belongs to only one log.
using Extensions = std::set<Offset>;

/// Reads one log at `offset`. Damage is everything on which the opener would fail, hang or crash:
/// entries that exceed their log or the pool, unknown operations, chains that leave the heap.
Log read_log(Window& window, const Descriptor& descriptor, LogKind kind, Offset offset,
             Extensions& seen, Findings& findings);

/// Applies a pending log to `patched` and subtracts its size from `room`; false if its snapshots
/// are larger than `room` bytes.
bool apply(const Log& log, PatchedView& patched, Offset& room);

} // namespace nearfar::inspect
