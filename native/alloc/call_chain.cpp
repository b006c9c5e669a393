#include "alloc/call_chain.hpp"

#include "base/frame_walk.hpp"
#include "os/objects.hpp"

namespace nearfar::alloc {

void walk_pointers(const void* frame, const os::Area& stack, std::size_t longest,
                   CallChain& chain) {
  const auto begin = reinterpret_cast<std::uintptr_t>(frame);
  const bool own_stack = begin >= stack.begin && begin < stack.end;
  walk_frames(
      begin,
      [&](std::uintptr_t at, FrameRecord& record) {
        const auto* from = reinterpret_cast<const FrameRecord*>(at);
        if (!own_stack || at > stack.end - sizeof record)
          return os::try_read(from, &record, sizeof record) == os::Read::done;
        record = *from;
        return true;
      },
      [&](std::uintptr_t caller) {
        chain.addresses[chain.length++] = reinterpret_cast<const void*>(caller);
        return chain.length < longest;
      });
}

void walk_tables(const void* return_address, std::size_t longest, CallChain& chain) {
  constexpr std::size_t max_inside = 12;
  const void* found[longest_chain + max_inside];
  const std::size_t count = os::call_chain_by_tables(found, longest_chain + max_inside);
  std::size_t at = 0;
  while (at < count && found[at] != return_address)
    ++at;
  for (++at; at < count && chain.length < longest; ++at)
    chain.addresses[chain.length++] = found[at];
}

} // namespace nearfar::alloc
