#include "alloc/slabs.hpp"

#include <cerrno>

#include "os/address_space.hpp"

namespace nearfar::alloc {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

/// Slabs with guards at a time: each takes up to two of the 65,530 mappings of a process.
constexpr std::uint32_t max_guarded_slabs = 12'000;
constinit std::atomic<std::uint32_t> guarded_slabs{0};

/// Makes the spans on both sides of a slab accessible or not. Returns whether that succeeded.
bool protect_sides(const Window& window, std::uint32_t first, std::uint32_t spans,
                   os::Access access) {
  const int before = os::protect(window.span_address(first - 1), span_bytes, access);
  const int behind = os::protect(window.span_address(first + spans), span_bytes, access);
  return before == 0 && behind == 0;
}

/// Allocates a slab between guards. Returns no_span if there can be none.
std::uint32_t allocate_guarded(RunAllocator& runs, std::uint32_t spans, bool& dirty) {
  if (guarded_slabs.fetch_add(1, relaxed) < max_guarded_slabs) {
    const std::uint32_t run = runs.allocate(spans + 2, 1, dirty);
    if (run != no_span && protect_sides(runs.window(), run + 1, spans, os::Access::none))
      return run + 1;
    if (run != no_span) {
      protect_sides(runs.window(), run + 1, spans, os::Access::read_write);
      runs.free_unused(run, spans + 2);
    }
  }
  guarded_slabs.fetch_sub(1, relaxed);
  return no_span;
}

} // namespace

std::uint32_t SlabSource::allocate(std::uint32_t spans, bool& dirty, bool& guarded) const {
  // If spans count against a capacity, guards would use it up.
  if (guards && runs.backing().anonymous && runs.backing().options.capacity == 0)
    if (const std::uint32_t first = allocate_guarded(runs, spans, dirty); first != no_span) {
      guarded = true;
      return first;
    }
  guarded = false;
  if (limit != nullptr && !limit->take(spans)) {
    errno = ENOMEM;
    return no_span;
  }
  const std::uint32_t first = runs.allocate(spans, 1, dirty);
  if (first == no_span && limit != nullptr) limit->give_back(spans);
  return first;
}

void SlabSource::free_unused(std::uint32_t first, std::uint32_t spans, bool guarded) const {
  if (guarded) {
    protect_sides(runs.window(), first, spans, os::Access::read_write);
    guarded_slabs.fetch_sub(1, relaxed);
    return runs.free_unused(first - 1, spans + 2);
  }
  runs.free_unused(first, spans);
  if (limit != nullptr) limit->give_back(spans);
}

} // namespace nearfar::alloc
