// Latencies and end times of the accesses of a program to one memory.
//
// Thread safety  one thread.
#pragma once

#include <algorithm>

#include "base/histogram.hpp"
#include "sim/timeline.hpp"

namespace nearfar::sim {

struct AccessTimes {
  Time read_time = 0; ///< sum of the latencies of reads
  Histogram read_ns;  ///< latencies of reads
  Timeline ended;     ///< number of accesses that ended, by interval
  Time last = 0;      ///< latest end of an access

  void read_ended(Time latency) {
    read_time += latency;
    read_ns.record(latency / 1000);
  }
  /// Records the end of an access or of a posted write.
  void access_ended(Time at) {
    ended.add(at - (at > 0)); // intervals are (begin, end], so that the run's end is in its last
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
