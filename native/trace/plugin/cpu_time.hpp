// SPDX-License-Identifier: MIT (LICENSE in this folder)
// CPU time that the recorded processes take, without the programs that they become (exec).
//
// Use            what all processes of a run took, less this, is the time of programs that are not
//                recorded.
// Thread safety  any thread; one process each.
#pragma once

#include <cstdint>
#include <ctime>

#include "trace/plugin/ring.hpp"

namespace nearfar::trace {

inline std::uint64_t process_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// One thread's attempt to become another program.
class ExecAttempt {
public:
  void begin(ring::Shared& shared) {
    taken_ns_ = process_cpu_ns();
    shared.executed.fetch_add(1);
    shared.recorded_cpu_ns.fetch_add(taken_ns_);
  }
  void failed(ring::Shared& shared) {
    shared.executed.fetch_sub(1);
    shared.recorded_cpu_ns.fetch_sub(taken_ns_);
  }

private:
  std::uint64_t taken_ns_ = 0;
};

} // namespace nearfar::trace
