// Processor time that a hypervisor took, as the kernel tells it.
//
// Thread safety  one StealMeter a thread.
#pragma once

#include <cstdint>

#include "os/file.hpp"

namespace nearfar::os {

/// Reads one processor's line of /proc/stat from a file that stays open. A reading costs 20 us to a
/// millisecond, by the number of processors, and the kernel counts in ticks of 10 ms.
class StealMeter {
public:
  explicit StealMeter(int cpu);

  /// Nanoseconds taken since boot; 0 where the kernel does not tell.
  std::uint64_t taken_ns() const;

private:
  File file_;
  int cpu_;
};

} // namespace nearfar::os
