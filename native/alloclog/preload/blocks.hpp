// Blocks in the shadow memory, which maps addresses to sites, and their sizes.
//
// Order          a block is entered after the program's malloc has returned it; a tracked one is
//                removed before free() gets it, so that an address has one owner.
// Freed blocks   tracked ones stay in the shadow, marked as freed: a sample of a block is read some
//                time later. Entries of small blocks that are not tracked stay until their memory
//                has another block, which removes them: free() of a block that is in no cache would
//                otherwise wait for the shadow's line, too. Whether a block is tracked follows
//                from a counter that is in a cache. A forked child hides the blocks of its parent
//                that it frees, and writes each.
// Resizing       a block that realloc() resizes or moves keeps its site, as it keeps its tier in
//                libhmalloc. Those of a forked child's parent get the site of the call.
// Granules       allocators with blocks of 16 bytes and less put two into a granule: the later one
//                is found there.
// Thread safety  any thread.
#pragma once

#include "alloclog/preload/sites.hpp"
#include "alloclog/preload/state.hpp"
#include "alloclog/preload/thread.hpp"

namespace nearfar::alloclog {

/// Enters a block, and returns it. The process must have a log.
void* enter(void* block, std::size_t bytes, CallSite call);

/// Entry and size of a block that was removed.
struct TakenBlock {
  bool was_written = false; ///< the shadow has changed
  Entry entry = 0;          ///< then: what it had
  std::size_t bytes = 0;    ///< of a tracked block; else 0
};

/// Removes a block that may be tracked, or, in a forked child, the parent's. `usable_bytes`: of the
/// block; 0 calls malloc_usable_size().
TakenBlock remove_written(std::uint64_t address, std::size_t usable_bytes);

/// Enters a removed block again, because realloc() failed.
void restore(std::uint64_t address, TakenBlock taken);

/// Enters the result of realloc() for a block of this site, and counts its growth. `tracked_bytes`:
/// see TakenBlock.
void* enter_resized(void* block, std::size_t bytes, Entry site, std::size_t tracked_bytes);

constexpr bool is_logged(std::uint64_t address) { return address >> address_bits == 0; }

/// The counter of tracked blocks at an address: neighbors have neighboring ones.
constexpr std::size_t filter_index(std::uint64_t address) {
  return static_cast<std::size_t>((address >> granule_bits ^ address >> unit_bits) %
                                  filter_counters);
}

/// False only if the block is certainly not tracked.
[[gnu::always_inline]] inline bool may_be_tracked(const void* block) {
  const auto address = reinterpret_cast<std::uint64_t>(block);
  return __atomic_load_n(&state.tracked[filter_index(address)], __ATOMIC_RELAXED) != 0;
}

/// The site of a block that is in use; 0 if it is not known, as of the blocks of a parent.
[[gnu::always_inline]] inline Entry site_of(const void* block) {
  const auto address = reinterpret_cast<std::uint64_t>(block);
  if (!is_logged(address)) return 0;
  const Entry entry = __atomic_load_n(&state.level0[address >> granule_bits], __ATOMIC_RELAXED);
  const auto site = static_cast<Entry>(entry & site_mask);
  const bool is_here = (entry & (half_bit | freed_bit)) == half_of(address);
  return site != freed_entry && is_here ? site : Entry{0};
}

/// Removes a block. The process must have a log. `usable_bytes`: see remove_written().
[[gnu::always_inline]] inline TakenBlock remove(const void* block, std::size_t usable_bytes = 0) {
  const auto address = reinterpret_cast<std::uint64_t>(block);
  if (!is_logged(address) || (!may_be_tracked(block) && state.freed == 0)) return {};
  return remove_written(address, usable_bytes);
}

} // namespace nearfar::alloclog
