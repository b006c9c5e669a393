// Stores made durable: so many blocks, then a fence.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/flush.hpp"

namespace nearfar::kernels {

struct PersistLoop {
  std::byte* base = nullptr;
  std::size_t blocks = 0;      ///< in the region; at most 2^32
  std::size_t block_lines = 1; ///< stored and flushed together
  std::size_t blocks_per_fence = 1;
  os::Persist how = os::Persist::ntstore;
  std::uint64_t state = 0; ///< of the random order
  std::uint64_t stamp = 0; ///< written into every line: the number of its fence
};

/// Writes and flushes random blocks under `fences` fences; moves state and stamp on.
void run_persists(PersistLoop& loop, std::size_t fences);

/// How many lines of the region carry a stamp later than `stamp`: proof that stores were made.
std::size_t count_stamped_after(const PersistLoop& loop, std::uint64_t stamp);

} // namespace nearfar::kernels
