// When the accesses of a program to one memory ended.
//
// Thread safety  one thread.
#pragma once

#include <algorithm>

#include "base/histogram.hpp"
#include "sim/timeline.hpp"

namespace nearfar::sim {

struct AccessTimes {
  Time read_time = 0; ///< summed latencies of reads
  Histogram read_ns;  ///< latencies of reads
  Timeline ended;     ///< accesses of the program, when they ended
  Time last = 0;      ///< when the last one ended

  void read_ended(Time latency) {
    read_time += latency;
    read_ns.record(latency / 1000);
  }
  /// An access or a posted write ends at `at`.
  void access_ended(Time at) {
    ended.add(at - (at > 0)); // an interval includes its end: that of the run
    last = std::max(last, at);
  }

  AccessTimes& operator+=(const AccessTimes& other) {
    read_time += other.read_time;
    read_ns.add(other.read_ns);
    ended.add(other.ended);
    last = std::max(last, other.last);
    return *this;
  }
};

} // namespace nearfar::sim
