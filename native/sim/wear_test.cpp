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

TEST_CASE("a page is summed up with the largest counts of one byte, and with more") {
  const auto page_of = [](int writes_a_line, int writes_of_first) {
    Wear wear;
    for (unsigned line = 0; line < lines_a_page; ++line)
      for (int i = 0; i < (line == 0 ? writes_of_first : writes_a_line); ++i)
        wear.write(line);
    return wear.summary();
  };
  CHECK(page_of(255, 255).max_page == 64 * 255);
  CHECK(page_of(255, 255).max_line == 255);
  const WearSummary more = page_of(255, 513);
  CHECK(more.lines == 64);
  CHECK(more.pages == 1);
  CHECK(more.max_line == 513);
  CHECK(more.max_page == 63 * 255 + 513);
}
