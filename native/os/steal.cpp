#include "os/steal.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace nearfar::os {

StealMeter::StealMeter(int cpu) : file_(open("/proc/stat", O_RDONLY | O_CLOEXEC)), cpu_(cpu) {}

std::uint64_t StealMeter::taken_ns() const {
  // The line lies within the first 100 bytes for each processor before it, and those of the sum.
  std::array<char, 16384> text{};
  const ssize_t got = pread(file_.fd(), text.data(), text.size(), 0);
  const std::string_view stat(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  char name[32];
  std::snprintf(name, sizeof name, "\ncpu%d ", cpu_);
  const std::size_t line = stat.find(name);
  if (line == std::string_view::npos) return 0;
  // cpuN user nice system idle iowait irq softirq steal
  std::size_t at = line + std::string_view(name).size();
  for (int field = 0; field < 7 && at != std::string_view::npos; ++field)
    at = stat.find(' ', at + 1);
  if (at == std::string_view::npos) return 0;
  std::uint64_t ticks = 0;
  std::from_chars(stat.data() + at + 1, stat.data() + stat.size(), ticks);
  return ticks * (1'000'000'000u / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK)));
}

} // namespace nearfar::os
