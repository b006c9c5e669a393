// What is wrong with a recorded program without looking at images: stores that are never made
// durable, stores that a transaction does not log, and calls that cost time for nothing.
//
// Model          a store reaches memory when its line is flushed afterwards, and a fence of the
//                thread that flushed follows (non-temporal stores need the fence only). Within a
//                transaction of libpmemobj, a store is undone if its bytes were logged before it.
// Granularity    4 bytes: neighboring variables in a line are judged separately.
// Libraries      what libpmem and libpmemobj store or flush on their own is followed, not judged.
// Cost           linear in the events and the lines they cover, times the number of distinct
//                findings; in a transaction, unlogged stores times log calls.
// Thread safety  none: values.
#pragma once

#include <vector>

#include "storelog/recorder.hpp"

namespace nearfar::crash {

/// A new rule also needs: name() in lint.cpp, RULES in python/nearfar/verify/lint.py,
/// docs/tutorials/crash.md.
enum class Rule {
  unflushed,      ///< a store that no flush follows; `site` is the store
  unfenced,       ///< a store that is flushed, and no fence follows; `other` is the flush
  unlogged,       ///< a store in a transaction to bytes that it never logs
  late_log,       ///< a store in a transaction before its bytes are logged; `other` is the call
  short_log,      ///< a store of which only a part was logged; `other` is the call
  repeated_flush, ///< a flush of lines that are flushed already; nothing was stored since
  needless_flush, ///< a flush of lines that are durable or were never stored to
  repeated_log,   ///< a log call for bytes that the transaction has logged or allocated
};

const char* name(Rule rule);

/// One rule at one place of the program.
struct LintFinding {
  Rule rule;
  storelog::Site site;
  storelog::Site other;
  std::uint64_t address = 0; ///< of the first occurrence, from the start of the pool
  std::uint32_t bytes = 0;
  std::uint64_t count = 0; ///< occurrences
};

/// In the order of the rules, then of the first occurrence.
std::vector<LintFinding> lint(const storelog::Log& log);

} // namespace nearfar::crash
