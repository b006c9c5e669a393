// One-way latency of a link by its load.
//
// The load is computed from the requests that were sent in the last full window of 1 us. The window
// is longer than the queues of a link and shorter than a measurement of loaded latency. Sent
// requests are counted, because completed ones arrive in bursts when the latency falls. Outside the
// measured loads, the latency is that of the nearest one.
// Thread safety  none.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/device.hpp"

namespace nearfar::sim {

class LinkLatency {
public:
  explicit LinkLatency(const Link& link) : at_load_(link.by_load), latency_(link.latency) {
    if (!at_load_.empty()) latency_ = at_load_.front().latency;
  }

  /// Counts a request that is sent, and returns the latency. Its line crosses the link in one of
  /// both directions. `at` may be slightly earlier than in the last call.
  Time send(Time at) {
    if (at_load_.empty()) return latency_;
    reach(at);
    ++lines_;
    return latency_;
  }

  /// Latency of a response.
  Time latency() const { return latency_; }

private:
  static constexpr Time window = 1'000'000;

  void reach(Time at) {
    const Time number = at / window;
    if (number <= window_) return;
    const std::uint64_t lines = number == window_ + 1 ? lines_ : 0;
    latency_ = by_load(static_cast<double>(lines * line_bytes) / (window * 1e-12));
    window_ = number;
    lines_ = 0;
  }

  Time by_load(double bytes_per_s) const {
    const auto above =
        std::lower_bound(at_load_.begin(), at_load_.end(), bytes_per_s,
                         [](const LinkLoad& load, double rate) { return load.bytes_per_s < rate; });
    if (above == at_load_.begin()) return at_load_.front().latency;
    if (above == at_load_.end()) return at_load_.back().latency;
    const LinkLoad& below = *(above - 1);
    const double part =
        (bytes_per_s - below.bytes_per_s) / (above->bytes_per_s - below.bytes_per_s);
    const double low = static_cast<double>(below.latency);
    return static_cast<Time>(low + part * (static_cast<double>(above->latency) - low));
  }

  std::vector<LinkLoad> at_load_;
  Time latency_;
  Time window_ = 0;         ///< number of the current window
  std::uint64_t lines_ = 0; ///< lines of the current window
};

} // namespace nearfar::sim
