#include "os/tsc.hpp"

#include <algorithm>
#include <array>

#include "os/clock.hpp"

namespace nearfar::os {

double tsc_tick_ns() {
  static const double tick_ns = [] {
    constexpr std::uint64_t span_ns = 20'000'000;
    const std::uint64_t start_ns = now_ns();
    const std::uint64_t start = tsc_begin();
    while (now_ns() - start_ns < span_ns) {
    }
    const std::uint64_t end = tsc_end();
    return static_cast<double>(now_ns() - start_ns) / static_cast<double>(end - start);
  }();
  return tick_ns;
}

std::uint64_t tsc_own_ticks() {
  std::array<std::uint64_t, 1000> ticks{};
  for (std::uint64_t& t : ticks) {
    const std::uint64_t start = tsc_begin();
    t = tsc_end() - start;
  }
  std::nth_element(ticks.begin(), ticks.begin() + ticks.size() / 2, ticks.end());
  return ticks[ticks.size() / 2];
}

} // namespace nearfar::os
