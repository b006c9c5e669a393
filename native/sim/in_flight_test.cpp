#include "sim/in_flight.hpp"

#include <doctest/doctest.h>

using namespace nearfar::sim;

TEST_CASE("a window has room until as many accesses as it holds are in it") {
  InFlight flying(3, 2);
  for (std::uint64_t i = 0; i < 3; ++i) {
    CHECK(flying.oldest_if_full(false) == no_access);
    CHECK(flying.add(false) == i << 1);
  }
  CHECK(flying.oldest_if_full(false) == 0);
  CHECK(flying.oldest_if_full(true) == no_access); // prefetches have a window of their own
  CHECK(flying.add(false) == 3 << 1);
  CHECK(flying.oldest_if_full(false) == 1 << 1);
  std::vector<std::uint64_t> seen;
  flying.add(true);
  flying.for_each([&](std::uint64_t id) { seen.push_back(id); });
  CHECK(seen == std::vector<std::uint64_t>{1 << 1, 2 << 1, 3 << 1, 1});
}

TEST_CASE(
    "what waits for an address finds the access that loads it, unless that is long complete") {
  InFlight flying(4, 4);
  Request request{};
  request.depends = 1;
  flying.next_request();
  const std::uint64_t first = flying.add(false);
  flying.add_read(first);
  flying.next_request();
  CHECK(flying.producer_of(request) == first);
  request.depends = 2; // before the first request
  CHECK(flying.producer_of(request) == no_access);
  flying.next_request(); // the one before had no read
  request.depends = 1;
  CHECK(flying.producer_of(request) == no_access);
  request.depends = 2;
  CHECK(flying.producer_of(request) == first);
  for (int i = 0; i < 5; ++i)
    flying.add(false);
  CHECK(flying.producer_of(request) == no_access);
}
