// State of a link between a CPU and a memory (CXL): latency (fixed or by load) and bandwidth of
// each direction, and a bounded number of requests in flight. Messages without data use no
// bandwidth.
//
// Thread safety  none.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/calendar.hpp"
#include "sim/completion.hpp"
#include "sim/link_latency.hpp"

namespace nearfar::sim {

class LinkState {
public:
  explicit LinkState(const Link& link)
      : latency_(link),
        line_(link.present()
                  ? std::max<Time>(static_cast<Time>(line_bytes / link.bytes_per_s * 1e12), 1)
                  : 0),
        ends_(link.queue), down_(line_), up_(line_) {}

  bool present() const { return line_ > 0; }

  /// Whether the next request must wait for a completion that is not known yet.
  bool full() const { return !ends_.empty() && ends_[next_] == never; }

  /// Returns when a request that is sent at `at` reaches the memory. A demand occupies a place in
  /// the queue while it is in flight; `place` receives its index. `place` is null for posted
  /// writes. Requires that full() is false.
  Time down(Time at, bool write, std::size_t* place) {
    if (place && !ends_.empty()) {
      at = std::max(at, ends_[next_]);
      ends_[next_] = never;
      *place = next_;
      next_ = (next_ + 1) % ends_.size();
    }
    const Time latency = latency_.send(at);
    return !write ? at + latency : down_.book(at) + line_ + latency;
  }

  /// Returns when the response that leaves the memory at `at` arrives. Frees the place in the
  /// queue.
  Time up(Time at, bool write, std::size_t place) {
    const Time latency = latency_.latency();
    const Time end = write ? at + latency : up_.book(at) + line_ + latency;
    if (!ends_.empty()) ends_[place] = end;
    return end;
  }

private:
  LinkLatency latency_;
  Time line_;              ///< time in which a line crosses the link in one direction; 0: no link
  std::vector<Time> ends_; ///< by place: end of its last request; `never`: in flight
  std::size_t next_ = 0;
  Calendar down_;
  Calendar up_;
};

} // namespace nearfar::sim
