// Time.
//
// Thread safety  all functions may be called from any thread.
#pragma once

#include <cstdint>

namespace nearfar::os {

/// Wall time in nanoseconds since an arbitrary start; not slewed by NTP. Costs 20-40 ns.
std::uint64_t now_ns();

/// Processor time of the calling thread in nanoseconds. Costs a system call, so never inside a
/// loop.
std::uint64_t thread_cpu_ns();

/// Processor time of all threads of this process so far, those that ended included.
std::uint64_t process_cpu_ns();

/// Sleeps at least that long, signals or not.
void sleep_ns(std::uint64_t duration_ns);

} // namespace nearfar::os
