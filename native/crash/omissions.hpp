// What a program left out around one of its stores, by the events of its log.
//
// Thread safety  none: values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "crash/finding.hpp"
#include "storelog/recorder.hpp"

namespace nearfar::crash {

/// Whether the host of the store `from` flushes the line of `address` before `to`, and before the
/// next fence of its thread: a later flush is one that was missing.
bool flushed(const storelog::Log& log, std::size_t from, std::size_t to, std::uint64_t address);

/// What is missing of a store `from` to the line of `address` that is not flushed early enough. Where
/// another thread flushes it, and a fence of that thread follows, it does so too late.
Missing missing_flush(const storelog::Log& log, std::size_t from, std::uint64_t address);

/// What the transaction, or the operation, around a store logs.
struct Logged {
  bool anything = false;
  bool before = false; ///< these bytes, before the store
  bool after = false;  ///< these bytes, but only after it
};
Logged logged(const storelog::Log& log, std::size_t at, std::uint64_t address, std::size_t bytes);

/// Events [first, last) that are one store of the program: those of a copy that the compiler has inlined
/// follow each other at one place.
struct Copy {
  std::size_t first = 0, last = 0;
  std::uint64_t lines = 0; ///< that it stores to
};
Copy copy_around(const storelog::Log& log, std::size_t at);

bool uses_logs(const storelog::Log& log);

/// Log or late_log for a store that changed data which its operation had not logged, though it logs
/// others; logic for any other.
Missing left_out(const storelog::Log& log, std::size_t at);

/// The first such store of the operation around event `at`, or null.
struct LeftOut {
  const storelog::Event* store = nullptr;
  Missing missing = Missing::logic;
};
LeftOut first_left_out(const storelog::Log& log, std::size_t at);

} // namespace nearfar::crash
