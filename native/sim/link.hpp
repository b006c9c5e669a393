// A link between processor and memory (CXL): latency each way, fixed or by load, bandwidth each way,
// a bounded number of requests in flight. Requests without data are not charged to the bandwidth.
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

  /// Is it still unknown when the next request may set out, as many as fit being in flight?
  bool full() const { return !ends_.empty() && ends_[next_] == never; }

  /// When a request that sets out at `at` reaches the memory. A demand takes a place in the queue
  /// for as long as it is in flight: `place` says which; not while full().
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

  /// When an answer that leaves the memory at `at` arrives, and gives its place in the queue back.
  Time up(Time at, bool write, std::size_t place) {
    const Time latency = latency_.latency();
    const Time end = write ? at + latency : up_.book(at) + line_ + latency;
    if (!ends_.empty()) ends_[place] = end;
    return end;
  }

private:
  LinkLatency latency_;
  Time line_;
  std::vector<Time> ends_; ///< of the last requests, as many as fit; never: in flight
  std::size_t next_ = 0;
  Calendar down_;
  Calendar up_;
};

} // namespace nearfar::sim
