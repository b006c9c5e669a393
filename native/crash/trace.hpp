// What was done to persistent memory, and what must be found in it after each operation.
//
// Thread safety  one recording a process at a time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "crash/arena.hpp"
#include "crash/subject.hpp"

namespace nearfar::crash {

struct Trace {
  storelog::Log log;
  /// models[k] after k operations, sorted unless order counts. Empty if unknown.
  std::vector<Contents> models;
  bool ordered = false; ///< contents are a sequence, not a set
  /// Where threads interleave: the numbers of the operations that end, in this order, and how many
  /// of them had ended after k acknowledged ones (those of the main thread are not listed).
  std::vector<std::uint64_t> operations;
  std::vector<std::size_t> operations_after;
  /// How the program ended before its time, in a sentence; empty if it did all operations. What it
  /// had done is there: the operation that failed counts as in flight.
  Failure ending = Failure::none;
  std::string ended;
};

/// Fills the subject in the arena and records it. `suppressed` takes a call away (mutations).
/// An operation that fails, crashes or hangs ends the trace (Trace::ended). Errors: those of
/// create(); failed_check if the log does not account for every byte, for then
/// a store was not reported, and what was explored would not be what happens.
Result<Trace> record_trace(Subject& subject, Arena& arena, const std::vector<Operation>& operations,
                           bool ordered, std::optional<storelog::Suppressed> suppressed = {});

} // namespace nearfar::crash
