// Hardening: freed blocks are kept back for a while, so that a use after free meets no new owner
// and a second free is surely seen.
//
// Thread safety  a quarantine belongs to a thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "alloc/cache.hpp"

namespace nearfar::alloc {

/// The oldest blocks leave when `bytes` or the ring's blocks are exceeded.
struct Quarantine {
  struct Block {
    Slot slot;
    std::uint32_t size_class;
    std::uint32_t tier;
  };
  static constexpr std::uint32_t capacity = 1024; // a power of two
  Block blocks[capacity];
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::size_t bytes = 0;
};

/// Puts a block that was just freed (its state is set already) in; what has to leave goes to the
/// thread's stack. False if the thread has none, or the block is too large for it.
bool put_in_quarantine(const Quarantine::Block& block);
void empty_quarantine(Cache& cache);
/// In the child of a fork, for a thread that is not there: its ring may be half written, so its
/// blocks stay where they are.
void forget_quarantine(Cache& cache);
void free_quarantine(Quarantine* quarantine);

} // namespace nearfar::alloc
