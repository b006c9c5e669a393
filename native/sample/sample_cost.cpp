#include "sample/sample_cost.hpp"

#include <algorithm>
#include <unistd.h>
#include <vector>

#include "os/clock.hpp"
#include "os/event_ring.hpp"

namespace nearfar::sample {

std::uint64_t sample_cost_ns(perf_event_attr clock) {
  constexpr std::size_t wanted = 16;
  constexpr std::uint64_t longest_ns = 100'000'000;
  clock.inherit = 0; // such events have a ring for all CPUs
  clock.disabled = clock.enable_on_exec = 0;
  Result<os::EventRing> ring = os::EventRing::open({&clock, 1}, gettid(), -1);
  if (!ring) return 0;
  std::vector<std::uint64_t> costs;
  const std::uint64_t begin = os::now_ns();
  std::uint64_t before = begin;
  std::uint64_t last = begin;
  while (costs.size() < wanted && last - begin < longest_ns) {
    bool has_sample = false;
    ring->drain([&](std::span<const std::uint8_t>) { has_sample = true; });
    const std::uint64_t now = os::now_ns();
    if (has_sample) costs.push_back(now - before); // it came on either side of `last`
    before = last;
    last = now;
  }
  if (costs.empty()) return 0;
  std::ranges::sort(costs);
  return costs[costs.size() / 4];
}

} // namespace nearfar::sample
