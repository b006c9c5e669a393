#include "os/usage.hpp"

#include <sys/resource.h>

#include "os/clock.hpp"

namespace nearfar::os {

namespace {
Usage read_accounts() {
  rusage r{};
  getrusage(RUSAGE_THREAD, &r);
  Usage u;
  u.minor_faults = static_cast<std::uint64_t>(r.ru_minflt);
  u.major_faults = static_cast<std::uint64_t>(r.ru_majflt);
  u.involuntary_switches = static_cast<std::uint64_t>(r.ru_nivcsw);
  u.cpu_ns = thread_cpu_ns();
  u.wall_ns = now_ns();
  return u;
}
} // namespace

UsageMeter::UsageMeter() : start_(read_accounts()) {}

Usage UsageMeter::since() const {
  Usage now = read_accounts();
  now.wall_ns -= start_.wall_ns;
  now.cpu_ns -= start_.cpu_ns;
  now.minor_faults -= start_.minor_faults;
  now.major_faults -= start_.major_faults;
  now.involuntary_switches -= start_.involuntary_switches;
  return now;
}

} // namespace nearfar::os
