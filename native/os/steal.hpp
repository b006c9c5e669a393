// CPU time that a hypervisor took, as the kernel reports it.
//
// Thread safety  one StealMeter a thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "os/file.hpp"

namespace nearfar::os {

/// Reads one CPU's line of /proc/stat from a file that stays open. A reading costs 20 us to a
/// millisecond, by the number of CPUs, and the kernel counts in ticks of 10 ms.
class StealMeter {
public:
  explicit StealMeter(int cpu, const char* path = "/proc/stat");

  /// Nanoseconds taken since boot; 0 if the kernel does not report it.
  std::uint64_t taken_ns() const;

private:
  /// The file at least up to the end of the CPU's line, read in one call, so that all is of one
  /// time.
  std::string_view read() const;

  File file_;
  int cpu_;
  mutable std::vector<char> text_;
};

} // namespace nearfar::os
