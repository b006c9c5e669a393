// Hardening: freed blocks are reused late, so that a use after free does not reach a new owner, and
// a double free is detected.
//
// A quarantine has two halves. One fills; when it is full, all blocks of the other leave at once,
// in a loop whose iterations are independent. A block thus waits for at least as many frees as a
// half holds.
//
// Thread safety  a quarantine belongs to a thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "alloc/thread_cache.hpp"

namespace nearfar::alloc {

struct Quarantine {
  struct Block {
    BlockRef ref;
    std::uint16_t size_class;
    std::uint16_t tier;
  };
  struct Half {
    static constexpr std::uint32_t capacity = 512;
    Block blocks[capacity];
    std::uint32_t count = 0;
    std::size_t bytes = 0;

    /// Whether a block of so many bytes fits into a half of at most `max_bytes`.
    bool fits(std::size_t block_bytes, std::size_t max_bytes) const {
      return count < capacity && bytes + block_bytes <= max_bytes;
    }
    void add(BlockRef ref, unsigned size_class, unsigned tier) {
      // Member by member: a copy of the struct would have to wait for the stores of its members.
      Block& block = blocks[count++];
      block.ref.block = ref.block;
      block.ref.state = ref.state;
      block.size_class = static_cast<std::uint16_t>(size_class);
      block.tier = static_cast<std::uint16_t>(tier);
      bytes += class_infos[size_class].bytes;
    }
  };
  Half halves[2];
  Half* filling = halves;
};

/// In the child of a fork, for a thread that does not exist there: its halves may be half written,
/// so its blocks are never reused.
void forget_quarantine(ThreadCache& cache);
/// Forgets the blocks of one tier.
void forget_quarantined(ThreadCache& cache, unsigned tier);
void free_quarantine(Quarantine* quarantine);

} // namespace nearfar::alloc
