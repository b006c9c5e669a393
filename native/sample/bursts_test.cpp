#include "sample/bursts.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using nearfar::sample::Bursts;

TEST_CASE("events are enabled at one reading in so many, not at equal distances") {
  constexpr std::uint64_t step = 30'000'000;
  constexpr unsigned readings = 6000;
  Bursts bursts(0);
  CHECK(bursts.enabled());
  CHECK(bursts.enabled_share() == 1.0);
  unsigned enabled = 0;
  unsigned shortest = readings;
  unsigned longest = 0;
  unsigned off = 0;
  for (unsigned i = 1; i <= readings; ++i) {
    const bool before = bursts.enabled();
    const bool changes = bursts.advance(i * step);
    CHECK(changes == (bursts.enabled() != before));
    enabled += bursts.enabled();
    if (!bursts.enabled()) {
      ++off;
    } else if (i > 1) {
      shortest = std::min(shortest, off);
      longest = std::max(longest, off);
      off = 0;
    }
  }
  CHECK(enabled == doctest::Approx(readings / Bursts::one_in).epsilon(0.03));
  CHECK(bursts.enabled_share() == doctest::Approx(1.0 / Bursts::one_in).epsilon(0.03));
  CHECK(shortest < longest);
  CHECK(longest < 2 * Bursts::one_in);
}
