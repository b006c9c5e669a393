#include "os/clock.hpp"

#include <cerrno>
#include <ctime>

namespace nearfar::os {

namespace {
std::uint64_t read_clock(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}
} // namespace

std::uint64_t now_ns() { return read_clock(CLOCK_MONOTONIC_RAW); }
std::uint64_t thread_cpu_ns() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }
std::uint64_t process_cpu_ns() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

void sleep_ns(std::uint64_t duration_ns) {
  timespec left{static_cast<time_t>(duration_ns / 1'000'000'000u),
                static_cast<long>(duration_ns % 1'000'000'000u)};
  while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {
  }
}

} // namespace nearfar::os
