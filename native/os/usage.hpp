// Resource usage of a thread while it was measured (faults, context switches): evidence of the
// noise verdict.
#pragma once

#include <cstdint>

namespace nearfar::os {

/// Difference of two readings of the calling thread's resource usage.
struct Usage {
  std::uint64_t wall_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t involuntary_switches = 0;
};

/// Starts at construction; `since()` may be called any number of times, from the same thread only.
class UsageMeter {
public:
  UsageMeter();
  Usage since() const;

private:
  Usage start_;
};

} // namespace nearfar::os
