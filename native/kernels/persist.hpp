// Durable stores: a number of blocks is stored and flushed, then a fence follows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/flush.hpp"

namespace nearfar::kernels {

struct PersistLoop {
  std::byte* base = nullptr;
  std::size_t blocks = 0;      ///< number of blocks in the region; at most 2^32
  std::size_t block_lines = 1; ///< lines of a block
  std::size_t blocks_per_fence = 1;
  os::Persist how = os::Persist::ntstore;
  std::uint64_t state = 0; ///< state of the random order
  std::uint64_t stamp = 0; ///< number of the last fence; each line stores that of its fence
};

/// Stores and flushes random blocks with `fences` fences; advances `state` and `stamp`.
void run_persists(PersistLoop& loop, std::size_t fences);

/// Number of lines of the region with a stamp above `stamp`: proves that stores were executed.
std::size_t count_stamped_after(const PersistLoop& loop, std::uint64_t stamp);

} // namespace nearfar::kernels
