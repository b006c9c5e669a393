#include "os/steal.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace nearfar::os {

namespace {
/// A line has the name and ten numbers of up to 20 digits.
constexpr std::size_t longest_line = 256;
} // namespace

StealMeter::StealMeter(int cpu, const char* path)
    : file_(open(path, O_RDONLY | O_CLOEXEC)), cpu_(cpu),
      text_(longest_line * (static_cast<std::size_t>(std::max(cpu, 0)) + 2)) {}

std::string_view StealMeter::read() const {
  const ssize_t got = pread(file_.fd(), text_.data(), text_.size(), 0);
  return {text_.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

std::uint64_t StealMeter::taken_ns() const {
  const std::string_view stat = read();
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
