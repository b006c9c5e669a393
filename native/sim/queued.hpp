// A memory of which latency and bandwidth are known, and the buffers in front of its medium: both
// engines use it as it is, since nobody published what commands it takes.
//
// Reads          cost the latency of the innermost buffer that holds their entry, or the medium's;
//                what misses the innermost buffer occupies the medium for one unit of its read
//                bandwidth. Buffers are LRU in sets of up to 64 ways, filled on the way back.
// Writes         are safe after their latency, unless more units wait than the innermost buffer
//                holds (64 where there is none); a unit goes to the medium when it leaves that
//                buffer.
// Directions     reads and writes take turns at the medium; where what both reach side by side is
//                known, each has its own way, and that is the bound of their sum.
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

  /// A write that nobody waits for: from when on its sender may go on.
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
