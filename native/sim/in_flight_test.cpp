#include "sim/in_flight.hpp"

#include <doctest/doctest.h>

using namespace nearfar::sim;

TEST_CASE("a window has room until it is full") {
  InFlight accesses(3, 2);
  for (std::uint64_t i = 0; i < 3; ++i) {
    CHECK(accesses.oldest_if_full(false) == no_access);
    CHECK(accesses.add(false) == i << 1);
  }
  CHECK(accesses.oldest_if_full(false) == 0);
  CHECK(accesses.oldest_if_full(true) == no_access); // prefetches have a window of their own
  CHECK(accesses.add(false) == 3 << 1);
  CHECK(accesses.oldest_if_full(false) == 1 << 1);
  std::vector<std::uint64_t> seen;
  accesses.add(true);
  accesses.for_each([&](std::uint64_t id) { seen.push_back(id); });
  CHECK(seen == std::vector<std::uint64_t>{1 << 1, 2 << 1, 3 << 1, 1});
}

TEST_CASE("a dependent request finds its producer, unless that has left the window") {
  InFlight accesses(4, 4);
  Request request{};
  request.depends = 1;
  accesses.next_request();
  const std::uint64_t first = accesses.add(false);
  accesses.add_read(first);
  accesses.next_request();
  CHECK(accesses.producer_of(request) == first);
  request.depends = 2; // before the first request
  CHECK(accesses.producer_of(request) == no_access);
  accesses.next_request(); // the one before had no read
  request.depends = 1;
  CHECK(accesses.producer_of(request) == no_access);
  request.depends = 2;
  CHECK(accesses.producer_of(request) == first);
  for (int i = 0; i < 5; ++i)
    accesses.add(false);
  CHECK(accesses.producer_of(request) == no_access);
}
