// What the kernel did to a thread while it was measured: the evidence of the noise verdict.
#pragma once

#include <cstdint>

namespace nearfar::os {

/// A difference of two readings of the calling thread's accounts.
struct Usage {
  std::uint64_t wall_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t involuntary_switches = 0;
};

/// Starts at construction; `since()` may be called as often as wanted, from the same thread only.
class UsageMeter {
public:
  UsageMeter();
  Usage since() const;

private:
  Usage start_;
};

} // namespace nearfar::os
