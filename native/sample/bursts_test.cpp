#include "sample/bursts.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using nearfar::sample::Bursts;

TEST_CASE("events are enabled for a share of the readings, not at equal distances") {
  double share = 0;
  SUBCASE("of a service") { share = 1.0 / 6; }
  SUBCASE("of a program") { share = 0.4; }
  SUBCASE("half of the time") { share = 0.5; }
  SUBCASE("with short pauses") { share = 0.9; }
  constexpr std::uint64_t step = 30'000'000;
  constexpr unsigned readings = 6000;
  Bursts bursts(share, 0);
  CHECK(bursts.enabled());
  CHECK(bursts.enabled_share() == 1.0);
  unsigned enabled = 0;
  unsigned shortest = readings;
  unsigned longest = 0;
  unsigned last = 0; // enabled reading
  for (unsigned i = 1; i <= readings; ++i) {
    const bool before = bursts.enabled();
    const bool changes = bursts.advance(i * step);
    CHECK(changes == (bursts.enabled() != before));
    if (!bursts.enabled()) continue;
    ++enabled;
    shortest = std::min(shortest, i - last);
    longest = std::max(longest, i - last);
    last = i;
  }
  CHECK(enabled == doctest::Approx(readings * share).epsilon(0.01));
  CHECK(bursts.enabled_share() == doctest::Approx(share).epsilon(0.01));
  CHECK(shortest < longest);
  CHECK(longest <= 2 / share);
}

TEST_CASE("events with all of the time are always enabled") {
  Bursts bursts(1.0, 0);
  for (unsigned i = 1; i < 100; ++i)
    CHECK_FALSE(bursts.advance(i));
  CHECK(bursts.enabled());
  CHECK(bursts.enabled_share() == 1.0);
}
