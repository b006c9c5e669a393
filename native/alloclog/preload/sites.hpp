// The site of a call: the chain of return addresses along frame pointers, as the emulator's
// recorder has it (trace/recorder/allocation.hpp).
//
// Fast path      frames in the known part of the stack are read directly, and the chain's hash is
//                looked up, without a call. Only an unknown chain is checked.
// Frames         code without frame pointers leaves any value in their register. If chains from a
//                return address fail often, later ones are cut before the frame that fails:
//                otherwise each would be unknown.
// Thread safety  any thread. Two threads that see a chain first may give it two numbers.
#pragma once

#include "alloclog/format.hpp"
#include "alloclog/preload/state.hpp"
#include "alloclog/preload/thread.hpp"
#include "base/call_site.hpp"
#include "base/frame_walk.hpp"

namespace nearfar::alloclog {

/// The number in a word of seen chains; 0 if it is of another chain.
inline Entry number_in(std::uint64_t word, std::uint64_t hash) {
  return (word ^ hash) <= site_mask ? static_cast<Entry>(word & site_mask) : Entry{0};
}

inline ChainLimit& chain_limit(std::uintptr_t caller) {
  return state.limits[caller % chain_limits];
}

/// The hash of a chain with one more return address. Only its high bits are used.
constexpr std::uint64_t chain_hash(std::uint64_t hash, std::uintptr_t caller) {
  return (hash + caller) * 0x9e3779b97f4a7c15u;
}

/// Calls visit(return address) for the chain of a call, innermost first, at most max_frames times.
/// False if the stack of the call is not known.
template <class Visit>
[[gnu::always_inline]] inline bool walk_chain(CallSite site, const Visit& visit) {
  const ThreadState& thread = thread_state;
  const auto caller = reinterpret_cast<std::uintptr_t>(site.return_address);
  auto at = reinterpret_cast<std::uintptr_t>(site.frame);
  if (at - thread.stack_low >= thread.stack_high - thread.stack_low) [[unlikely]]
    return false;
  visit(caller);
  const std::uintptr_t last = thread.stack_high - sizeof(FrameRecord);
  for (unsigned left = max_frames - 1 - chain_limit(caller).cut; left != 0; --left) {
    const std::uintptr_t outer = reinterpret_cast<const FrameRecord*>(at)->outer;
    if (outer - at - 1 >= last - at || outer % sizeof outer != 0) break; // not in (at, last]
    at = outer;
    visit(reinterpret_cast<const FrameRecord*>(at)->caller);
  }
  return true;
}

/// The number of the site of a call, from 1; 0 if it has to be found by find_site().
[[gnu::always_inline]] inline Entry known_site(CallSite site) {
  std::uint64_t hash = 0;
  const auto add = [&hash](std::uintptr_t caller) { hash = chain_hash(hash, caller); };
  if (!walk_chain(site, add)) return 0;
  return number_in(__atomic_load_n(&state.seen[hash >> state.seen_shift], __ATOMIC_RELAXED), hash);
}

/// The same for calls from unknown stacks and with unknown chains.
Entry find_site(CallSite site);

} // namespace nearfar::alloclog
