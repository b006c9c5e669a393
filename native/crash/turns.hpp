// Interleavings worth a run of the program, from the log of a run in which its threads did not
// interleave.
//
// How            a thread is held before it flushes a store of its own, while the store is visible
//                and not durable, and the others go on (runtime/turns.hpp). What they do then may
//                rest on a value that a power cut loses. Each place that stores is held at its first
//                flush before any is held at its second, and so on.
// Numbers        of threads and flushes are those of runtime/turns.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "storelog/recorder.hpp"

namespace nearfar::crash {

/// A thread, and before which of its flushes it waits.
struct Turn {
  std::uint16_t thread = 0;
  std::uint64_t flush = 0;
  storelog::Site store; ///< the last store that this flush writes back
};

/// The turns of all threads that the program created; the main thread is 0.
std::vector<Turn> list_turns(const storelog::Log& log);

/// The first event of an operation of a created thread other than the one that was held, if one was
/// (else 0); the number of events if there is none.
std::size_t first_of_others(const storelog::Log& log, std::uint16_t held);

} // namespace nearfar::crash
