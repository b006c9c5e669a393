// State of this process in the allocation log, and joining the log.
//
// Fork           the state is in pages that the kernel clears in a forked child (MADV_WIPEONFORK),
//                and the log is not mapped there (MADV_DONTFORK): a child has no log, and claims
//                its own. After vfork(), the parent's memory is in use, and so is its log.
// Safety         a failure has no effect on the program but that it has no log. No descriptor stays
//                open. The log is not part of core files, and has no huge pages.
// Thread safety  any thread, also signal handlers: nothing waits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "alloclog/format.hpp"

namespace nearfar::alloclog {

/// Chains that were seen, by a hash of 64 bits: the hash with the number in its low 14 bits. Lines
/// of 8 words. The first bits of the hash are the index: the more chains, the more of them, so that
/// small programs touch one page.
inline constexpr unsigned seen_bits[] = {9, 12, 16};
inline constexpr std::size_t seen_chains = 1 << 16;
/// Number of chain limits, indexed by a hash of the return address.
inline constexpr std::size_t chain_limits = 1 << 13;

/// Counters of tracked blocks, by address: few enough to stay in the second-level cache.
inline constexpr std::size_t filter_counters = 1 << 16;

enum class Phase : std::uint32_t { untried = 0, joining, joined, off };

/// Depth to which chains from a return address are followed.
struct ChainLimit {
  std::uint8_t failures; ///< chains that did not hold, since the limit was set
  std::uint8_t cut;      ///< frames not to be followed, of max_frames
};

struct alignas(4096) ProcessState {
  /// nullptr while this process has no log; the last field to be written.
  Entry* level0;
  std::byte* slot;
  /// free() of the program, once blocks that are not tracked need not be taken out (blocks.hpp).
  void (*next_free)(void*);
  std::uint32_t phase;
  std::uint16_t seen_shift; ///< of a hash, to get the index
  /// Written where a block was freed: 0, or freed_entry in a forked child.
  Entry freed;
  ChainLimit limits[chain_limits];
  std::uint8_t tracked[filter_counters];
  alignas(64) std::uint64_t seen[seen_chains];
};

extern ProcessState state;

inline SlotHeader& header() { return *reinterpret_cast<SlotHeader*>(state.slot); }
inline SiteRecord& site_record(Entry number) {
  return reinterpret_cast<SiteRecord*>(state.slot + sites_offset)[number];
}

/// Gets a log for this process at the first call; whether it has one now. Keeps errno.
bool join_log();

/// Whether the process has a log; tries to get one at the first call. Keeps errno.
[[gnu::always_inline]] inline bool has_log() {
  if (__atomic_load_n(&state.level0, __ATOMIC_ACQUIRE) != nullptr) [[likely]]
    return true;
  return join_log();
}

} // namespace nearfar::alloclog
