// The site of a call: the chain of return addresses along frame pointers, as the emulator's recorder
// has it (trace/plugin/allocation.hpp).
//
// Fast path      frames in the known part of the stack are read directly, and the chain's hash is
//                looked up. Only an unknown chain is checked.
// Frames         code without frame pointers leaves any value in their register. Where chains from
//                a return address fail often, later ones are cut before the frame that fails: each
//                would be unknown.
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
  return state.limits[(caller ^ caller >> 12) % chain_limits];
}

/// Whether a frame's record can be read, which makes more of the stack known if needed.
bool learn_stack(std::uintptr_t frame, std::uintptr_t outer);

/// The number of the site of a call whose chain was not found where it is looked for first.
Entry find_site(CallSite site);

/// Calls visit(return address) for the chain of a call, innermost first, at most max_frames times.
template <class Visit>
[[gnu::always_inline]] inline void walk_chain(CallSite site, const Visit& visit) {
  const auto caller = reinterpret_cast<std::uintptr_t>(site.return_address);
  const auto frame = reinterpret_cast<std::uintptr_t>(site.frame);
  visit(caller);
  unsigned left = max_frames - 1 - chain_limit(caller).cut;
  if (left == 0) return;
  const auto try_read = [frame](std::uintptr_t outer, FrameRecord& record) {
    const ThreadState& thread = thread_state;
    const bool known = frame >= thread.stack_low && outer + sizeof record <= thread.stack_high;
    if (!known && !learn_stack(frame, outer)) return false;
    record = *reinterpret_cast<const FrameRecord*>(outer);
    return true;
  };
  walk_frames(frame, try_read, [&](std::uintptr_t outer_caller) {
    visit(outer_caller);
    return --left != 0;
  });
}

/// The number of the site of a call, from 1. The process must have a log.
[[gnu::always_inline]] inline Entry site_of(CallSite site) {
  std::uint64_t hash = 0;
  walk_chain(site, [&hash](std::uintptr_t caller) { hash = hash_with(hash, caller); });
  const std::uint64_t seen = __atomic_load_n(&state.seen[hash % seen_chains], __ATOMIC_RELAXED);
  if (const Entry number = number_in(seen, hash); number != 0) [[likely]]
    return number;
  return find_site(site);
}

} // namespace nearfar::alloclog
