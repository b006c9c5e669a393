#include "sim/address_mapping.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <tuple>

using namespace nearfar;
using namespace nearfar::sim;

namespace {

constexpr Organization organization{2, 2, 4, 4, 1024}; // 16 lines a row: 4 bits of column

DramAddress decoded(const char* mapping, std::uint64_t line) {
  Result<AddressMapping> parsed = parse_mapping(mapping);
  REQUIRE(parsed);
  return AddressDecoder(organization, *parsed).decode(line);
}

} // namespace

TEST_CASE("fields are taken from the lowest bit, the last name first") {
  const DramAddress p = decoded("rorabacobgch", 0b1'01'1010'10'1);
  CHECK(p.channel == 1);
  CHECK(p.group == 0b10);
  CHECK(p.rank == 1);
  CHECK(p.bank == (1 << 4 | 0b10 << 2 | 0b01));
  CHECK(p.row == 0);
  const DramAddress q = decoded("rochrababgco", 0b11'1'1'01'10'1010);
  CHECK(q.group == 0b10);
  CHECK(q.rank == 1);
  CHECK(q.channel == 1);
  CHECK(q.bank == (1 << 4 | 0b10 << 2 | 0b01));
  CHECK(q.row == 0b11);
}

TEST_CASE("every mapping spreads the lines of one row number evenly over all banks") {
  for (const char* mapping : {"rorabacobgch", "rochrababgco", "rocorababgch", "rochbgracoba"}) {
    std::set<std::tuple<std::uint32_t, std::uint32_t>> banks;
    const std::uint64_t lines = 2 * 2 * 4 * 4 * 16;
    for (std::uint64_t line = 0; line < lines; ++line) {
      const DramAddress p = decoded(mapping, line);
      CHECK(p.row == 0);
      banks.emplace(p.channel, p.bank);
    }
    CHECK(banks.size() == 64);
    CHECK(decoded(mapping, lines).row == 1);
  }
}

TEST_CASE(
    "a mapping without a field, with a duplicate field, or with the row below others is refused") {
  for (const char* wrong : {"", "ro", "rorabacobg", "rorabacobgbg", "rorabacobgxx", "chrorabacobg",
                            "rorabacobgchch", "RORABACOBGCH"})
    CHECK(!parse_mapping(wrong));
}

TEST_CASE("lines alternate between channels and groups, and stay in a row") {
  const AddressDecoder decoder({2, 2, 4, 4, 8192});
  CHECK(decoder.decode(0).channel == 0);
  CHECK(decoder.decode(1).channel == 1);
  CHECK(decoder.decode(2).group == 1);
  CHECK(decoder.decode(8).group == 0);
  const std::uint64_t stripe = 8192 / line_bytes * 8; // lines of a row in all groups and channels
  CHECK(decoder.decode(stripe - 1).row == 0);
  CHECK(decoder.decode(stripe - 1).bank % 4 == 0);
  CHECK(decoder.decode(stripe).bank % 4 == 1);
  CHECK(decoder.decode(stripe * 4).rank == 1);
  CHECK(decoder.decode(stripe * 8).row == 1);
}
