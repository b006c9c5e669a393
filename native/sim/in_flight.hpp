// The accesses that a core has in flight, and which of them produced the address of another.
//
// Thread safety  one thread.
#pragma once

#include <array>
#include <bit>
#include <vector>

#include "sim/completion.hpp"
#include "sim/requests.hpp"

namespace nearfar::sim {

struct FlyingAccess {
  Time dispatched = 0; ///< when it would be sent if it depended on no other access
  Time sent = 0;
  Time end = never; ///< `never`: not known yet
  std::uint64_t line = 0;
  std::uint64_t dependent = no_access; ///< the last access that waits for the data of this one
  std::uint64_t sibling = no_access;   ///< the next access that waits for the same data
  std::size_t place = 0;               ///< in the queue of the link
  bool near = false;
  bool write = false;
};

/// Demands and prefetches, each with a window of its own: older accesses are complete. An id is
/// twice the number of the access in its window, plus 1 for prefetches.
class InFlight {
public:
  InFlight(std::uint64_t demand_window, std::uint64_t prefetch_window)
      : windows_{Window(demand_window), Window(prefetch_window)},
        reads_(2 * (max_depends + 1), no_access) {}

  FlyingAccess& operator[](std::uint64_t id) {
    Window& window = windows_[id & 1];
    return window.accesses[(id >> 1) & window.mask];
  }

  /// The access that must end before another can start; no_access if the window has room.
  std::uint64_t oldest_if_full(bool prefetch) const {
    const Window& window = windows_[prefetch];
    return window.next >= window.size ? (window.next - window.size) << 1 | prefetch : no_access;
  }
  std::uint64_t add(bool prefetch) { return windows_[prefetch].next++ << 1 | prefetch; }

  /// A request of the program. Its read is added by add_read().
  void next_request() { reads_[++request_ & (reads_.size() - 1)] = no_access; }
  void add_read(std::uint64_t id) { reads_[request_ & (reads_.size() - 1)] = id; }

  /// The access whose data is the address of this one; no_access if it is long complete.
  std::uint64_t producer_of(const Request& request) const {
    if (request.depends > max_depends || request.depends >= request_) return no_access;
    const std::uint64_t id = reads_[(request_ - request.depends) & (reads_.size() - 1)];
    if (id == no_access || id & 1) return no_access;
    const Window& window = windows_[0];
    return window.next - (id >> 1) > window.size + 1 ? no_access : id;
  }

  /// Calls see(id) for the accesses that may still be in flight, oldest first, demands first.
  template <class See>
  void for_each(const See& see) {
    for (std::uint64_t kind = 0; kind < 2; ++kind) {
      const Window& window = windows_[kind];
      for (std::uint64_t n = window.next > window.size ? window.next - window.size : 0;
           n < window.next; ++n)
        see(n << 1 | kind);
    }
  }

private:
  struct Window {
    explicit Window(std::uint64_t many)
        : size(many), mask(std::bit_ceil(4 * many) - 1), accesses(mask + 1) {}
    std::uint64_t size;
    std::uint64_t next = 0;
    std::uint64_t mask;
    std::vector<FlyingAccess> accesses; ///< a ring
  };

  std::array<Window, 2> windows_;    ///< demands, prefetches
  std::vector<std::uint64_t> reads_; ///< ids of the last reads, by number of the request
  std::uint64_t request_ = 0;        ///< its number
};

} // namespace nearfar::sim
