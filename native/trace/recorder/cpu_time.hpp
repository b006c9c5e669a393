// SPDX-License-Identifier: MIT (LICENSE in this folder)
// CPU time of the recorded processes, without that of the programs that they start by exec().
//
// Use            the CPU time of all processes of a run, less this, is that of programs that are
//                not recorded.
// Thread safety  any thread; one process each.
#pragma once

#include <cstdint>
#include <ctime>

#include "trace/recorder/ring.hpp"

namespace nearfar::trace {

inline std::uint64_t process_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// A thread's call of exec().
class ExecAttempt {
public:
  void begin(ring::Shared& shared) {
    cpu_ns_ = process_cpu_ns();
    shared.executed.fetch_add(1);
    shared.recorded_cpu_ns.fetch_add(cpu_ns_);
  }
  void failed(ring::Shared& shared) {
    shared.executed.fetch_sub(1);
    shared.recorded_cpu_ns.fetch_sub(cpu_ns_);
  }

private:
  std::uint64_t cpu_ns_ = 0;
};

} // namespace nearfar::trace
