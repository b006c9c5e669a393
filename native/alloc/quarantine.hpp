// Hardening: freed blocks are kept back for a while, so that a use after free meets no new owner
// and a second free is surely seen.
//
// Kept in two halves: one fills, and when it is full all of the other leave at once, in a loop
// whose turns do not wait for each other. So a block waits for as many frees as a half holds, or
// more.
//
// Thread safety  a quarantine belongs to a thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "alloc/cache.hpp"
#include "alloc/settings.hpp"

namespace nearfar::alloc {

/// A half is full at `capacity` blocks, or at half of the bytes that were asked for.
struct Quarantine {
  struct Block {
    Slot slot;
    std::uint16_t size_class;
    std::uint16_t tier;
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

/// The half that is to be filled now, emptied for it; nullptr if the thread can have no quarantine.
Quarantine::Half* make_room_in_quarantine();

/// Puts a block that was just freed (its state is set already) in; what has to leave goes to the
/// thread's stacks. False if the thread has none, or the block is too large for it.
inline bool put_in_quarantine(Slot slot, unsigned size_class, unsigned tier) {
  const std::size_t bytes = class_infos[size_class].bytes;
  const std::size_t most = settings.quarantine_bytes / 2;
  const Quarantine* kept = this_cache->quarantine;
  Quarantine::Half* half = kept == nullptr ? nullptr : kept->filling;
  if (half == nullptr || half->count == Quarantine::Half::capacity || half->bytes + bytes > most)
      [[unlikely]] {
    half = bytes > most ? nullptr : make_room_in_quarantine();
    if (half == nullptr) return false;
  }
  // Word by word: a copy of the whole would have to wait until its words are stored.
  Quarantine::Block& block = half->blocks[half->count++];
  block.slot.block = slot.block;
  block.slot.state = slot.state;
  block.size_class = static_cast<std::uint16_t>(size_class);
  block.tier = static_cast<std::uint16_t>(tier);
  half->bytes += bytes;
  return true;
}

void empty_quarantine(Cache& cache);
/// In the child of a fork, for a thread that is not there: its halves may be half written, so its
/// blocks stay where they are.
void forget_quarantine(Cache& cache);
/// Forgets the blocks of one tier.
void forget_quarantined(Cache& cache, unsigned tier);
void free_quarantine(Quarantine* quarantine);

} // namespace nearfar::alloc
