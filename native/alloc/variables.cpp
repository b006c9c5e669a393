#include "alloc/variables.hpp"

#include <cstdint>
#include <cstring>

#include "alloc/tier_heap.hpp"
#include "os/address_space.hpp"
#include "os/signals.hpp"

namespace nearfar::alloc {

namespace {

/// A range that was placed; `copy` exists during a fork.
struct Placed {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  bool in_file = false;
  std::byte* copy = nullptr;
};

constexpr std::size_t most_ranges = 64; ///< programs and libraries with variables in tiers
constinit os::Lock placed_lock;
constinit Placed placed[most_ranges];
constinit std::size_t placed_count = 0;

Error no_room(std::size_t bytes) {
  return Error::make(Errc::no_space, "no room for %zu bytes of variables", bytes);
}

Status place_in_memory(const Options& options, std::byte* begin, std::size_t bytes) {
  std::byte* kept = os::map_anonymous(bytes);
  if (kept == nullptr) return no_room(bytes);
  std::memcpy(kept, begin, bytes);
  const int code = os::map_anonymous_at(begin, bytes, os::Place::replace, true);
  if (code == 0) {
    if (options.policy != os::Policy::local)
      os::set_policy(begin, bytes, options.policy, options.nodes, false);
    std::memcpy(begin, kept, bytes);
  }
  os::unmap(kept, bytes);
  if (code != 0) return no_room(bytes);
  return Done{};
}

/// The pages of a large block of the tier appear at the variables' address too.
Status place_in_file(unsigned tier, std::byte* begin, std::size_t bytes) {
  bool dirty = false;
  const auto spans = static_cast<std::uint32_t>(spans_for(bytes));
  std::byte* block = take_large(tiers[tier], spans, 1, dirty);
  if (block == nullptr) return no_room(bytes);
  std::memcpy(block, begin, bytes);
  if (os::map_again_at(block, begin, bytes) == 0) return Done{};
  give_back_large(tiers[tier], static_cast<std::uint32_t>(offset_of(block) >> span_shift));
  return no_room(bytes);
}

} // namespace

os::Lock& variables_lock() { return placed_lock; }

Status place_variables(unsigned tier, std::byte* begin, std::size_t bytes) {
  const os::SignalsBlocked blocked; // a handler may fork
  const os::LockGuard guard(placed_lock);
  for (std::size_t i = 0; i < placed_count; ++i)
    if (placed[i].begin == begin) return Done{}; // every source file of an object asks for it
  if (reinterpret_cast<std::uintptr_t>(begin) % os::page_bytes != 0 || bytes % os::page_bytes != 0)
    return Error::make(Errc::bad_input, "variables do not lie in whole pages: the linker put "
                                        "something between them");
  if (placed_count == most_ranges)
    return Error::make(Errc::no_space, "more than 64 objects have variables in tiers");
  const Medium& medium = tiers[tier].runs.medium();
  if (Status s = medium.anonymous ? place_in_memory(medium.options, begin, bytes)
                                  : place_in_file(tier, begin, bytes);
      !s)
    return s.error();
  if (!medium.anonymous && medium.options.fork == ForkPolicy::deny)
    os::dont_fork(begin, bytes);
  placed[placed_count++] = {begin, bytes,
                            !medium.anonymous && medium.options.fork != ForkPolicy::deny, nullptr};
  return Done{};
}

void copy_variables_for_child() {
  for (std::size_t i = 0; i < placed_count; ++i)
    if (placed[i].in_file && (placed[i].copy = os::map_anonymous(placed[i].bytes)) != nullptr)
      std::memcpy(placed[i].copy, placed[i].begin, placed[i].bytes);
}

void drop_variable_copies() {
  for (std::size_t i = 0; i < placed_count; ++i)
    if (placed[i].copy != nullptr) {
      os::unmap(placed[i].copy, placed[i].bytes);
      placed[i].copy = nullptr;
    }
}

void adopt_variable_copies() {
  for (std::size_t i = 0; i < placed_count; ++i) {
    Placed& range = placed[i];
    if (!range.in_file) continue;
    if (range.copy == nullptr || os::move_mapping(range.copy, range.begin, range.bytes) != 0)
      os::unmap(range.begin, range.bytes); // an access faults rather than being shared
    range.copy = nullptr;
    range.in_file = false;
  }
}

} // namespace nearfar::alloc
