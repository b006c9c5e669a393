#include "sim/calendar.hpp"

#include <doctest/doctest.h>

using namespace nearfar::sim;

TEST_CASE("a free bus is had at once, a taken slot makes the next one wait") {
  Calendar bus(10);
  CHECK(bus.book(3) == 3);
  CHECK(bus.book(5) == 10);
  CHECK(bus.book(5) == 20);
  CHECK(bus.book(47) == 47);
  CHECK(bus.book(30) == 30); // what came later booked further ahead
}

TEST_CASE("a full bus passes one transfer a slot, over any distance") {
  Calendar bus(10);
  Time last = 0;
  for (int i = 0; i < 100'000; ++i)
    last = bus.book(0);
  CHECK(last >= 10 * 99'999);
  CHECK(bus.book(50'000'000) == 50'000'000);
  CHECK(bus.book(50'000'003) == 50'000'010);
}

TEST_CASE("a resource without slots never makes anyone wait") {
  Calendar none(0);
  CHECK(none.book(7) == 7);
  CHECK(none.book(7) == 7);
}
