// Blocks in the shadow of the address space, and their sizes.
//
// Order          a block is entered after the program's malloc returned it and taken out before
//                free() gets it, so that an address has one owner.
// Granules       allocators with blocks of 16 bytes and less put two into a granule: the later one is
//                found there. Its entry keeps the mark of a tracked one.
// Thread safety  any thread. Two that change one granule at once may lose a mark: then the tracked
//                block stays counted as live.
#pragma once

#include "alloclog/preload/sites.hpp"
#include "alloclog/preload/state.hpp"
#include "alloclog/preload/thread.hpp"

namespace nearfar::alloclog {

/// Enters a block, and returns it. The process must have a log.
void* enter(void* block, std::size_t bytes, CallSite call);

/// What was known of a block that was taken out.
struct TakenBlock {
  Entry entry = 0;       ///< 0: nothing
  std::size_t bytes = 0; ///< of a tracked block; else 0
};

/// Takes a block out that may be tracked, or was allocated before this process had its log.
TakenBlock remove_tracked(std::uint64_t address);

/// Enters a block again that was taken out, as realloc() failed.
void restore(std::uint64_t address, TakenBlock taken);

constexpr bool is_logged(std::uint64_t address) { return address >> address_bits == 0; }

/// Takes a block out. The process must have a log.
[[gnu::always_inline]] inline TakenBlock remove(const void* block) {
  const auto address = reinterpret_cast<std::uint64_t>(block);
  if (!is_logged(address)) [[unlikely]]
    return {};
  Entry& entry = state.level0[address >> granule_bits];
  const Entry before = entry;
  if (before == 0 || (before & tracked_bit) != 0) [[unlikely]]
    return remove_tracked(address);
  entry = state.freed;
  return {before, 0};
}

} // namespace nearfar::alloclog
