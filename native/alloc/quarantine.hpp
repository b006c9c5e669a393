// Hardening: freed blocks are reused late, so that a use after free does not reach another object,
// and a double free is detected.
//
// A quarantine has two halves. One fills; when it is full, the other one is emptied at once, in a
// loop whose iterations are independent, and fills next. A block thus waits for at least as many
// frees as a half holds: 512, fewer if some blocks are large.
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
    BlockStack* stack; ///< that it goes to later; nullptr: it is freed in its class
  };
  struct Half {
    static constexpr std::uint32_t capacity = 512;
    Block blocks[capacity];
    Block* stop = blocks; ///< past the last block; not valid for the half that fills
  };

  explicit Quarantine(std::size_t bytes);
  /// Number of entries that a block takes, so that a half holds at most half of the bytes.
  std::size_t entries_of(std::size_t bytes) const {
    return bytes <= entry_bytes ? 1 : (bytes + entry_bytes - 1) / entry_bytes;
  }
  std::size_t room() const { return static_cast<std::size_t>(end - next); }
  /// Adds a block that takes one entry. There is room.
  [[gnu::always_inline]] void add(BlockRef ref, BlockStack* stack) {
    // Member by member: a copy of the struct would have to wait for the stores of its members.
    Block* block = next;
    block->ref.block = ref.block;
    block->ref.state = ref.state;
    block->stack = stack;
    next = block + 1;
  }
  Block*& stop_of(Half& half) { return &half == filling ? next : half.stop; }
  Half& other() { return filling == halves ? halves[1] : halves[0]; }
  /// Fills the other half, which is empty, from now on.
  void turn();
  void forget();

  Block* next; ///< behind the last block of the filling half
  Block* end;  ///< of the entries there
  std::size_t entry_bytes;
  std::uint32_t small_classes; ///< classes whose blocks take one entry
  Half* filling = halves;
  Half halves[2];
};

/// In the child of a fork, for a thread that does not exist there: its halves may be half written,
/// so its blocks are never reused.
void forget_quarantine(ThreadCache& cache);
/// Forgets the blocks of one tier.
void forget_quarantined(const Window& window, ThreadCache& cache, unsigned tier);
void free_quarantine(Quarantine* quarantine);

} // namespace nearfar::alloc
