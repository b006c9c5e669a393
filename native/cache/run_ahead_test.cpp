#include "cache/run_ahead.hpp"

#include <doctest/doctest.h>

using namespace nearfar::cache;

namespace {

Hierarchy with_streams() {
  auto made = Hierarchy::create({{16 << 10, 8, 64, Policy::lru}, {1 << 20, 16, 64, Policy::lru}});
  REQUIRE(made);
  made->set_prefetcher(1, std::make_unique<RunAhead>(256));
  return std::move(*made);
}

std::uint64_t misses_of(Hierarchy& caches, std::uint64_t lines, int step, std::uint64_t first) {
  const std::uint64_t before = caches.counters(1).load_misses();
  for (std::uint64_t i = 0; i < lines; ++i)
    caches.access((first + i * static_cast<std::uint64_t>(step)) * 64, 8, Access::load);
  return caches.counters(1).load_misses() - before;
}

} // namespace

TEST_CASE("streams up and down miss few lines, and fewer the longer they run") {
  Hierarchy caches = with_streams();
  // Two misses start a stream, then one after 16, 32, 64, 128 lines, and one in 257 from there on.
  CHECK(misses_of(caches, 2 + 16 + 33 + 65 + 129, 1, 1 << 20) == 5);
  CHECK(misses_of(caches, 25700, -1, 1 << 24) <= 110);
  CHECK(misses_of(caches, 25700, 1, 1 << 25) <= 110);
}

TEST_CASE("lines apart are no stream") {
  Hierarchy caches = with_streams();
  CHECK(misses_of(caches, 1000, 3, 1 << 20) == 1000);
  CHECK(caches.counters(1).prefetches == 0);
}
