#include "alloc/recent_spans.hpp"

#include <doctest/doctest.h>

using nearfar::alloc::RecentSpans;

namespace {

constexpr std::uint32_t spans = 300;
constexpr std::size_t bytes = 4096;

std::uint32_t count_recent(const RecentSpans& recent) {
  std::uint32_t count = 0;
  for (std::uint32_t at = 0; at < spans; ++at)
    count += recent.find(at, at + 1, true) == at;
  return count;
}

} // namespace

TEST_CASE("each span is recent in the tick in which it was freed, and in the next one") {
  RecentSpans recent;
  REQUIRE(recent.open(bytes));
  REQUIRE(recent.make_writable(0, spans) == 0);
  recent.advance(1, 0, spans);
  recent.add(10, 100);
  recent.advance(2, 0, spans);
  recent.add(40, 5);
  CHECK(count_recent(recent) == 100);
  recent.advance(3, 0, spans);
  CHECK(count_recent(recent) == 5);
  CHECK(recent.find(0, spans, true) == 40);
  CHECK(recent.find(40, spans, false) == 45);
  CHECK(recent.find(45, spans, true) == spans);
  recent.add(200, 1);
  recent.remove(41, 1);
  CHECK(count_recent(recent) == 5);
  recent.advance(5, 0, spans); // two ticks
  CHECK(count_recent(recent) == 0);
  recent.close(bytes);
}

TEST_CASE("an older tick of a late thread changes nothing") {
  RecentSpans recent;
  REQUIRE(recent.open(bytes));
  REQUIRE(recent.make_writable(0, spans) == 0);
  recent.advance(255, 0, spans);
  recent.advance(0, 0, spans); // ticks wrap around
  recent.add(64, 64);
  recent.advance(255, 0, spans);
  CHECK(count_recent(recent) == 64);
  recent.advance(1, 0, spans);
  CHECK(recent.find(0, spans, true) == 64);
  recent.advance(2, 0, spans);
  CHECK(recent.find(0, spans, true) == spans);
  recent.close(bytes);
}
