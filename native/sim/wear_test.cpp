#include "sim/wear.hpp"

#include <doctest/doctest.h>

using namespace nearfar::sim;

TEST_CASE("wear is told by line and by page") {
  Wear wear;
  for (int i = 0; i < 5; ++i)
    wear.write(3);
  wear.write(4);
  for (int i = 0; i < 4; ++i)
    wear.write(lines_a_page + 9);
  const Worn worn = wear.summary();
  CHECK(worn.lines == 3);
  CHECK(worn.pages == 2);
  CHECK(worn.most_line == 5);
  CHECK(worn.most_page == 6);
}
