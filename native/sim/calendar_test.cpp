#include "sim/calendar.hpp"

#include <doctest/doctest.h>

using namespace nearfar::sim;

TEST_CASE("a transfer begins at once on a free bus, else at the next free slot") {
  Calendar bus(10);
  CHECK(bus.book(3) == 3);
  CHECK(bus.book(5) == 10);
  CHECK(bus.book(5) == 20);
  CHECK(bus.book(47) == 47);
  CHECK(bus.book(30) == 30); // before the latest reservation
}

TEST_CASE("a full bus serves one transfer per slot") {
  Calendar bus(10);
  Time last = 0;
  for (int i = 0; i < 100'000; ++i)
    last = bus.book(0);
  CHECK(last >= 10 * 99'999);
  CHECK(bus.book(50'000'000) == 50'000'000);
  CHECK(bus.book(50'000'003) == 50'000'010);
}

TEST_CASE("a slot length of 0 means unlimited") {
  Calendar none(0);
  CHECK(none.book(7) == 7);
  CHECK(none.book(7) == 7);
}
