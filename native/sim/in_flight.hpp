// Accesses in flight of a core, and their dependences.
//
// Thread safety  one thread.
#pragma once

#include <array>
#include <bit>
#include <vector>

#include "sim/completion.hpp"
#include "sim/requests.hpp"

namespace nearfar::sim {

struct InFlightAccess {
  Time dispatched = 0; ///< time at which it would be sent without a dependence
  Time sent = 0;
  Time end = never; ///< `never` until it completes
  std::uint64_t line = 0;
  std::uint64_t dependent = no_access; ///< head of the list of accesses that wait for this one
  std::uint64_t sibling = no_access;   ///< next access in the list of its producer
  std::size_t place = 0;               ///< in the queue of the link
  bool near = false;
  bool write = false;
};

/// Windows of demands and of prefetches. Accesses older than a window are complete. The id of an
/// access is 2 * its number in its window, plus 1 for prefetches.
class InFlight {
public:
  InFlight(std::uint64_t demand_window, std::uint64_t prefetch_window)
      : windows_{Window(demand_window), Window(prefetch_window)}, reads_(reads, no_access) {}

  InFlightAccess& operator[](std::uint64_t id) {
    Window& window = windows_[id & 1];
    return window.accesses[(id >> 1) & window.mask];
  }

  /// The access that must complete before the next one is sent; no_access if the window has room.
  std::uint64_t oldest_if_full(bool prefetch) const {
    const Window& window = windows_[prefetch];
    return window.next >= window.size ? (window.next - window.size) << 1 | prefetch : no_access;
  }
  std::uint64_t add(bool prefetch) { return windows_[prefetch].next++ << 1 | prefetch; }

  /// The end of the demand that must complete before the next one is sent; 0 if the window has room.
  Time end_of_oldest() {
    const Window& window = windows_[0];
    if (window.next < window.size) return 0;
    return window.accesses[(window.next - window.size) & window.mask].end;
  }
  /// Counts a request and adds it as a demand read whose end is known. It waits for no producer.
  void add_complete_read(Time end) {
    Window& window = windows_[0];
    window.accesses[window.next & window.mask].end = end;
    reads_[++request_ % reads] = window.next++ << 1;
  }

  /// Counts a request of the program. add_read() sets the id if it is a read.
  void next_request() { reads_[++request_ % reads] = no_access; }
  void add_read(std::uint64_t id) { reads_[request_ % reads] = id; }

  /// The access that produces the address of `request`; no_access if it has left the window.
  std::uint64_t producer_of(const Request& request) const {
    if (request.depends > max_depends || request.depends >= request_) return no_access;
    const std::uint64_t id = reads_[(request_ - request.depends) % reads];
    if (id == no_access || id & 1) return no_access;
    const Window& window = windows_[0];
    return window.next - (id >> 1) > window.size + 1 ? no_access : id;
  }

  /// Calls see(id) for each access that may be in flight: demands, then prefetches, oldest first.
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
  static constexpr std::size_t reads = std::size_t{2} * (max_depends + 1);

  struct Window {
    explicit Window(std::uint64_t many)
        : size(many), mask(std::bit_ceil(4 * many) - 1), accesses(mask + 1) {}
    std::uint64_t size;
    std::uint64_t next = 0;
    std::uint64_t mask;
    std::vector<InFlightAccess> accesses; ///< a ring
  };

  std::array<Window, 2> windows_;    ///< demands, prefetches
  std::vector<std::uint64_t> reads_; ///< ids of the last reads, by request_; a ring
  std::uint64_t request_ = 0;        ///< number of the last request
};

} // namespace nearfar::sim
