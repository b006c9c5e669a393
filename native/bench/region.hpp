// The region of interest of a benchmark: callbacks when a thread enters and leaves it.
//
// Purpose        counters of only the measured operations, not of start-up or loading. The counters
//                (of the CPU, or of a cache model) are notified at the edges of the region.
// Thread safety  prepare, begin and end are called on the thread they are about, with its number.
#pragma once

#include <cstddef>

#include "base/result.hpp"

namespace nearfar::bench {

class MeasuredRegion {
public:
  virtual ~MeasuredRegion() = default;
  /// Once for each thread, before its region: what takes long, and may fail.
  virtual Status prepare(std::size_t thread) = 0;
  virtual void begin(std::size_t thread) = 0;
  virtual void end(std::size_t thread) = 0;
};

/// A thread's own edge of a region, which may be none.
struct RegionEdge {
  MeasuredRegion* region = nullptr;
  std::size_t thread = 0;

  Status prepare() const { return region != nullptr ? region->prepare(thread) : Done{}; }
  void begin() const {
    if (region != nullptr) region->begin(thread);
  }
  void end() const {
    if (region != nullptr) region->end(thread);
  }
};

} // namespace nearfar::bench
