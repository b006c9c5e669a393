#include "sim/wear.hpp"

#include <doctest/doctest.h>

using namespace nearfar::sim;

TEST_CASE("wear is counted by line and by page") {
  Wear wear;
  for (int i = 0; i < 5; ++i)
    wear.write(3);
  wear.write(4);
  for (int i = 0; i < 4; ++i)
    wear.write(lines_a_page + 9);
  const WearSummary summary = wear.summary();
  CHECK(summary.lines == 3);
  CHECK(summary.pages == 2);
  CHECK(summary.max_line == 5);
  CHECK(summary.max_page == 6);
}

TEST_CASE("counts exceed a byte, at any address") {
  Wear wear;
  const std::uint64_t far_off = std::uint64_t{1} << 26;
  for (int i = 0; i < 1000; ++i)
    wear.write(far_off);
  for (int i = 0; i < 256; ++i)
    wear.write(far_off + 1);
  wear.write(2);
  const WearSummary summary = wear.summary();
  CHECK(summary.lines == 3);
  CHECK(summary.pages == 2);
  CHECK(summary.max_line == 1000);
  CHECK(summary.max_page == 1256);
}
