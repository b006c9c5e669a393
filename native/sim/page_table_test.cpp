#include "sim/page_table.hpp"

#include <doctest/doctest.h>
#include <unordered_map>

#include "base/random.hpp"

using namespace nearfar::sim;

TEST_CASE("pages keep their frames while the table grows, also pages that collide") {
  PageTable table;
  std::unordered_map<std::uint64_t, std::uint64_t> reference;
  nearfar::Random random(3);
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    const std::uint64_t page = i % 2 != 0 ? random.next() % 20'000 : (random.next() % 9'000) << 40;
    std::uint64_t& value = table[page];
    const auto known = reference.find(page);
    REQUIRE(value == (known == reference.end() ? PageTable::absent : known->second));
    value = i;
    reference[page] = i;
    REQUIRE(table.size() == reference.size());
  }
  for (const auto& [page, value] : reference)
    REQUIRE(table[page] == value);
}
