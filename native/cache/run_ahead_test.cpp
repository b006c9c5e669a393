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

TEST_CASE("streams up and down miss their first two lines alone, and all of them come in") {
  Hierarchy caches = with_streams();
  CHECK(misses_of(caches, 2 + 16 + 33 + 65 + 129, 1, 1 << 20) == 2);
  CHECK(misses_of(caches, 25700, -1, (1 << 24) + 63) == 2);
  CHECK(misses_of(caches, 25700, 1, 1 << 25) == 2);
  CHECK(caches.counters(1).prefetches >= 2 * 25698);
}

TEST_CASE("a line that comes with a stream is dirty once written") {
  Hierarchy caches = with_streams();
  constexpr std::uint64_t first = 1 << 20;
  for (std::uint64_t line = first; line < first + 1024; ++line)
    caches.access(line * 64, 8, Access::store);
  std::uint64_t written = 0;
  for (std::uint64_t line = first; line < first + 1024; ++line) {
    const std::uint64_t before = caches.counters(0).writebacks + caches.counters(1).writebacks;
    caches.flush(line * 64, true);
    written += caches.counters(0).writebacks + caches.counters(1).writebacks > before;
  }
  CHECK(written == 1024);
}

TEST_CASE("a stream waits for hardly a page walk, accesses pages apart wait for one each") {
  Hierarchy caches = with_streams();
  auto tlb = Tlb::create({{64, 4}, {512, 8}});
  REQUIRE(tlb);
  caches.set_tlb(std::move(*tlb));
  misses_of(caches, 64 * 1000, 1, 1 << 20);
  const std::uint64_t of_stream = caches.tlb()->walks();
  CHECK(of_stream < 10);
  misses_of(caches, 1000, 3 * 64, 1 << 24);
  CHECK(caches.tlb()->walks() == of_stream + 1000);
}

TEST_CASE("lines that are not neighbors do not make a stream") {
  Hierarchy caches = with_streams();
  CHECK(misses_of(caches, 1000, 3, 1 << 20) == 1000);
  CHECK(caches.counters(1).prefetches == 0);
}
