// A memory model of latency, bandwidth and buffers, for memories whose commands are not published.
// Both engines use it.
//
// Reads          cost the latency of the innermost buffer that holds their entry, or the medium's;
//                what misses the innermost buffer occupies the medium for one unit of its read
//                bandwidth. Buffers are LRU in sets of up to 64 ways, filled on the way back.
// Writes         are safe after their latency, unless more units wait than the innermost buffer
//                holds (64 where there is none); a unit goes to the medium when it leaves that
//                buffer.
// Directions     reads and writes alternate at the medium. If the device has a figure for both at
//                the same time, each has its own bandwidth, and the figure bounds their sum.
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

  /// When the access is over: a read has its data, a write is safe.
  Time serve(Time at, std::uint64_t line, bool write);

  /// A posted write: when its sender may continue.
  Time accept(Time at, std::uint64_t line) {
    return std::max(at, write(at, line) - queued_.write_latency);
  }

  const Work& work() const { return work_; }

private:
  explicit QueuedMemory(const Queued& queued);
  Time read(Time at, std::uint64_t line);
  Time write(Time at, std::uint64_t line);
  struct Use {
    Time own = 0;    ///< of its direction
    Time shared = 0; ///< of what both directions have in common
  };
  Use use_of(std::uint64_t bytes, double bytes_per_s) const;
  /// When it begins.
  Time occupy(Time at, Time& way, Use use);

  struct Level {
    cache::Cache tags;
    unsigned shift; ///< from lines to entries
    Time latency;
  };
  Queued queued_;
  std::vector<Level> levels_;
  Use read_use_; ///< of one unit of the medium
  Use write_use_;
  Use line_use_;   ///< of a line that a buffer holds
  Time slack_;     ///< how far writes may run ahead of the medium
  Time reads_ = 0; ///< when the way of each direction is free
  Time writes_ = 0;
  Time shared_ = 0;
  Work work_;
};

} // namespace nearfar::sim
