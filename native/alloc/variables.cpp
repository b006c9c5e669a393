#include "alloc/variables.hpp"

#include <cstdint>
#include <cstring>

#include "alloc/node_policy.hpp"
#include "os/address_space.hpp"
#include "os/signals.hpp"

namespace nearfar::alloc {

namespace {

Error no_room(std::size_t bytes) {
  return Error::make(Errc::no_space, "no room for %zu bytes of variables", bytes);
}

Status place_in_memory(const TierOptions& options, std::byte* begin, std::size_t bytes) {
  std::byte* saved = os::map_anonymous(bytes);
  if (saved == nullptr) return no_room(bytes);
  std::memcpy(saved, begin, bytes);
  const int code = os::map_anonymous_at(begin, bytes, os::Place::replace, true);
  if (code == 0) {
    set_node_policy(begin, bytes, options, false);
    std::memcpy(begin, saved, bytes);
  }
  os::unmap(saved, bytes);
  if (code != 0) return no_room(bytes);
  return Done{};
}

/// Maps the pages of a large block of the tier at the variables' address too.
Status place_in_file(TierHeap& tier, std::byte* begin, std::size_t bytes, std::uint8_t now) {
  bool dirty = false;
  std::byte* block = tier.allocate_large(static_cast<std::uint32_t>(spans_for(bytes)), 1, dirty);
  if (block == nullptr) return no_room(bytes);
  std::memcpy(block, begin, bytes);
  if (os::map_again_at(block, begin, bytes) == 0) return Done{};
  tier.free_large(tier.window().span_index(block), now);
  return no_room(bytes);
}

} // namespace

Status PlacedVariables::place(TierHeap& tier, std::byte* begin, std::size_t bytes,
                              std::uint8_t now) {
  const os::SignalsBlocked blocked; // a handler may fork
  const os::LockGuard guard(lock);
  for (std::size_t i = 0; i < count_; ++i)
    if (ranges_[i].begin == begin) return Done{}; // each source file of an object requests it
  if (reinterpret_cast<std::uintptr_t>(begin) % os::page_bytes != 0 || bytes % os::page_bytes != 0)
    return Error::make(Errc::bad_input, "variables do not fill whole pages: the linker put other "
                                        "data between them");
  if (count_ == max_ranges)
    return Error::make(Errc::no_space, "more than 64 objects have variables in tiers");
  const TierBacking& backing = tier.runs.backing();
  if (Status s = backing.anonymous ? place_in_memory(backing.options, begin, bytes)
                                   : place_in_file(tier, begin, bytes, now);
      !s)
    return s.error();
  const bool in_file = !backing.anonymous;
  const bool denied = backing.options.fork == ForkPolicy::deny;
  if (in_file && denied) os::dont_fork(begin, bytes);
  ranges_[count_++] = {begin, bytes, in_file && !denied, nullptr};
  return Done{};
}

void PlacedVariables::copy_for_child() {
  for (std::size_t i = 0; i < count_; ++i) {
    Range& range = ranges_[i];
    if (range.in_file && (range.copy = os::map_anonymous(range.bytes)) != nullptr)
      std::memcpy(range.copy, range.begin, range.bytes);
  }
}

void PlacedVariables::drop_copies() {
  for (std::size_t i = 0; i < count_; ++i) {
    if (ranges_[i].copy == nullptr) continue;
    os::unmap(ranges_[i].copy, ranges_[i].bytes);
    ranges_[i].copy = nullptr;
  }
}

void PlacedVariables::adopt_copies() {
  for (std::size_t i = 0; i < count_; ++i) {
    Range& range = ranges_[i];
    if (!range.in_file) continue;
    if (range.copy == nullptr || os::move_mapping(range.copy, range.begin, range.bytes) != 0)
      os::unmap(range.begin, range.bytes); // an access faults instead of being shared
    range.copy = nullptr;
    range.in_file = false;
  }
}

} // namespace nearfar::alloc
