// Hardening: freed blocks are kept back for a while, so that a use after free meets no new owner
// and a second free is surely seen.
//
// Kept in two halves: one fills, and when it is full all of the other leave at once, which costs a
// third of taking them out one by one. So a block waits for as many frees as a half holds, or more.
//
// Thread safety  a quarantine belongs to a thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "alloc/cache.hpp"

namespace nearfar::alloc {

/// A half is full at `capacity` blocks, or at half of the bytes that were asked for.
struct Quarantine {
  struct Block {
    Slot slot;
    std::uint32_t size_class;
    std::uint32_t tier;
  };
  struct Half {
    static constexpr std::uint32_t capacity = 512;
    Block blocks[capacity];
    std::uint32_t count = 0;
    std::size_t bytes = 0;
  };
  Half halves[2];
  Half* filling = halves;
};

/// Puts a block that was just freed (its state is set already) in; what has to leave goes to the
/// thread's stack. False if the thread has none, or the block is too large for it.
bool put_in_quarantine(const Quarantine::Block& block);
void empty_quarantine(Cache& cache);
/// In the child of a fork, for a thread that is not there: its halves may be half written, so its
/// blocks stay where they are.
void forget_quarantine(Cache& cache);
void free_quarantine(Quarantine* quarantine);

} // namespace nearfar::alloc
