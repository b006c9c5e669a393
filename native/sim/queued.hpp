// A memory model of latency, bandwidth and buffers, for devices without command timings. Both
// engines use it.
//
// Reads          take the latency of the innermost buffer that holds the entry, else of the medium.
//                They use the read bandwidth for a line if they hit the innermost buffer, else for
//                an access unit. Buffers are LRU with up to 64 ways; a read fills the buffers that
//                it missed.
// Writes         are complete after the write latency, unless more units wait for the medium than
//                the innermost buffer holds (64 without a buffer). A unit is written to the medium
//                when it is evicted from that buffer.
// Directions     Reads and writes take turns at the medium. If the device has a bandwidth of both
//                together, reads and writes have separate bandwidths, and their sum is bounded.
// Thread safety  none.
#pragma once

#include <algorithm>
#include <vector>

#include "cache/cache.hpp"
#include "sim/device.hpp"

namespace nearfar::sim {

class QueuedMemory {
public:
  /// Errors: those of cache::Cache::create.
  static Result<QueuedMemory> create(const Device& device);

  /// Returns the end of an access.
  Time serve(Time at, std::uint64_t line, bool write);

  /// Sends a posted write. Returns when the sender may continue.
  Time accept(Time at, std::uint64_t line) {
    return std::max(at, write(at, line) - queued_.write_latency);
  }

  const Activity& activity() const { return activity_; }

private:
  explicit QueuedMemory(const Queued& queued);
  Time read(Time at, std::uint64_t line);
  Time write(Time at, std::uint64_t line);
  struct Use {
    Time own = 0;    ///< time of the direction
    Time shared = 0; ///< time of the part that both directions share
  };
  Use use_of(std::uint64_t bytes, double bytes_per_s) const;
  /// Reserves the medium and returns the begin. `direction_free`: when the direction is free.
  Time occupy(Time at, Time& direction_free, Use use);

  struct Level {
    cache::Cache tags;
    unsigned shift; ///< from lines to entries
    Time latency;
  };
  Queued queued_;
  std::vector<Level> levels_;
  Use read_use_; ///< of one access unit
  Use write_use_;
  Use line_use_;   ///< of a line in the innermost buffer
  Time slack_;     ///< maximum delay between the acceptance of a write and the medium
  Time reads_ = 0; ///< when each direction is free
  Time writes_ = 0;
  Time shared_ = 0;
  Activity activity_;
};

} // namespace nearfar::sim
