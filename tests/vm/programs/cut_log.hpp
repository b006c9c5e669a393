// Reports to the host, while they happen, of the changes that must survive a power cut.
//
// The program that links this has its flushes and fences of one pool streamed to a descriptor:
// those it reports to storelog, and those that libpmemobj makes of libpmem (which are caught by the
// names that libpmemobj imports). Only what a fence has made durable goes out, before the thread
// goes on: what the host has not got is still pending, and may be lost. So a write to the
// descriptor must return only when the host has it: a file on a 9p share does so. (A virtio port
// returns before, and the host would take for lost what later stores rely on.)
//
// Records         a byte of kind, then little-endian numbers of 64 bits:
//                   X n, n·(file offset, disk offset, bytes)   where the pool lies, once
//                   F n, n·(file offset of a line, turn, its 64 bytes)   durable from here on;
//                     of two copies of a line that of the later turn holds, whichever comes last
//                   B thread structure operation key value   an operation begins
//                   A thread result                          it is acknowledged
//                   P thread phase event fences   a phase begins (0), ends (1), or the thread has
//                     stopped in it (2) before its next fence; fences it made in it so far
// Phases         creation and recovery of the pool are reported by the code that makes and opens it. Growth is
//                the allocation of a chunk, reported likewise, and the birth of a segment of the map.
// Thread safety   all functions may be called by several threads.
#pragma once

#include <cstdint>

namespace cut {

/// Instruction that is left out, as a control: the test must notice.
enum class Without : unsigned char { nothing, flushes, fence };

/// Stretches in which a cut is looked for.
enum class Phase : unsigned char { none, creation, growth, recovery };

/// The thread that is about to make fence number `fence` (from 1) of this phase stops for ever, its
/// lines pending, so that the power can be cut there.
void stop_at(Phase phase, std::uint64_t fence);

/// The calling thread is in a phase while this lives.
class During {
public:
  explicit During(Phase phase);
  ~During();
  During(const During&) = delete;
  During& operator=(const During&) = delete;
};

/// Fences of a phase so far, of all threads.
std::uint64_t fences_in(Phase phase);

/// Streams the events that the calling thread reports to storelog from here on, under this number.
void stream_this_thread(std::uint64_t thread);

/// Streams to the descriptor from here on; `pool` is a path that may not exist yet.
void stream_to(int descriptor, const char* pool, Without without);

void begin(std::uint64_t thread, std::uint64_t structure, std::uint64_t operation,
           std::uint64_t key, std::uint64_t value);
void acknowledge(std::uint64_t thread, std::uint64_t result);

} // namespace cut
