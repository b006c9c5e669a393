// What must survive a power cut, told to the host while it happens.
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
// Thread safety   all functions may be called by several threads.
#pragma once

#include <cstdint>

namespace cut {

/// What is taken out, as a control: the test must notice.
enum class Without : unsigned char { nothing, flushes, fence };

/// Streams to the descriptor from here on; `pool` is a path that may not exist yet.
void stream_to(int descriptor, const char* pool, Without without);

void begin(std::uint64_t thread, std::uint64_t structure, std::uint64_t operation,
           std::uint64_t key, std::uint64_t value);
void acknowledge(std::uint64_t thread, std::uint64_t result);

} // namespace cut
