#include "base/random.hpp"

#include <array>
#include <doctest/doctest.h>

using nearfar::Random;

TEST_CASE("the sequence is that of SplitMix64") {
  // The first outputs for the seed 1234567 of the authors' reference program.
  Random random(1234567);
  CHECK(random.next() == 6457827717110365317u);
  CHECK(random.next() == 3203168211198807973u);
  CHECK(random.next() == 9817491932198370423u);
}

TEST_CASE("equal seeds repeat, different seeds differ") {
  Random one(1);
  Random again(1);
  Random two(2);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const auto drawn = one.next();
    CHECK(drawn == again.next());
    differs = differs || drawn != two.next();
  }
  CHECK(differs);
}

TEST_CASE("below() stays below and draws all values equally often") {
  constexpr std::uint64_t bound = 10;
  constexpr int draws = 100'000;
  std::array<int, bound> counts{};
  Random random(3);
  for (int i = 0; i < draws; ++i) {
    const auto drawn = random.below(bound);
    REQUIRE(drawn < bound);
    ++counts[drawn];
  }
  for (const int count : counts) { // 10,000 each, standard deviation 95
    CHECK(count > 9'500);
    CHECK(count < 10'500);
  }
  CHECK(random.below(1) == 0);
}
