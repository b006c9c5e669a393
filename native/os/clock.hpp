// Time.
//
// Thread safety  all functions may be called from any thread.
#pragma once

#include <cstdint>

namespace nearfar::os {

/// Wall time in nanoseconds since an arbitrary start; not slewed by NTP. Costs 20-40 ns.
std::uint64_t now_ns();

/// CPU time of the calling thread in nanoseconds. Costs a system call: do not call it inside a
/// timed loop.
std::uint64_t thread_cpu_ns();

/// CPU time of all threads of this process so far, including those that have ended.
std::uint64_t process_cpu_ns();

/// Sleeps at least that long, even if signals interrupt it.
void sleep_ns(std::uint64_t duration_ns);

} // namespace nearfar::os
