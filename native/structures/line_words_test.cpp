#include "structures/line_words.hpp"

#include <doctest/doctest.h>

#include "base/random.hpp"

using namespace nearfar;
using namespace nearfar::structures;

TEST_CASE("bits name the slots whose word is equal under the mask") {
  struct alignas(64) {
    std::uint64_t value_and_word[slots_per_line][2];
  } line{};
  Random random(1);
  for (int draw = 0; draw < 10'000; ++draw) {
    const std::uint64_t word = random.next();
    // few bits differ, in halves of words that comparisons could take for each other
    const std::uint64_t mask = ~std::uint64_t{0} << random.below(64);
    for (auto& [value, stored] : line.value_and_word) {
      value = word; // must not be compared
      stored = word ^ (random.below(2) << random.below(64));
    }
    unsigned expected = 0;
    for (unsigned i = 0; i < slots_per_line; ++i)
      expected |= unsigned{((line.value_and_word[i][1] ^ word) & mask) == 0} << i;
    CHECK(slots_with(&line, word, mask) == expected);
    CHECK(slots_with(&line, word, 0) == all_slots);
  }
}
