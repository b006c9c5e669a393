#include "cache/hierarchy.hpp"

#include <doctest/doctest.h>

using namespace nearfar;
using cache::Access;
using cache::Hierarchy;
using cache::Traffic;

namespace {

Hierarchy make(const std::vector<cache::Geometry>& levels) {
  Result<Hierarchy> made = Hierarchy::create(levels);
  REQUIRE(made);
  return std::move(*made);
}

constexpr cache::Geometry small{2 * 64, 2};
constexpr cache::Geometry large{4 * 64, 4};

class NextLine : public cache::Prefetcher {
  void missed(std::uint64_t line, std::vector<std::uint64_t>& wanted) override {
    wanted.push_back(line + 1);
  }
};

} // namespace

TEST_CASE("a level is looked up when the one above missed") {
  Hierarchy h = make({small, large});
  for (const std::uint64_t line : {1u, 2u, 3u, 1u})
    h.access(line * 64, 8, Access::load);
  CHECK(h.counters(0).loads() == 4);
  CHECK(h.counters(0).load_misses() == 4);
  CHECK(h.counters(1).loads() == 4);
  CHECK(h.counters(1).load_misses() == 3);
}

TEST_CASE("a store misses as a store, and its line is written once it leaves the last level") {
  Hierarchy h = make({small, large});
  std::vector<Traffic> traffic;
  h.record_traffic(&traffic);
  h.access(64, 8, Access::store);
  h.access(64, 8, Access::modify);
  for (std::uint64_t line = 2; line < 7; ++line)
    h.access(line * 64, 8, Access::load);
  CHECK(h.counters(0).stores() == 1);
  CHECK(h.counters(0).store_misses() == 1);
  CHECK(h.counters(0).loads() == 6);
  CHECK(h.counters(0).writebacks == 1);
  CHECK(h.counters(1).writebacks == 1);
  REQUIRE(traffic.size() == 7);
  unsigned written = 0;
  for (const Traffic& t : traffic)
    if (t.write) {
      ++written;
      CHECK(t.line == 1);
    }
  CHECK(written == 1);
}

TEST_CASE("an access over two lines counts once") {
  Hierarchy h = make({small, large});
  std::vector<Traffic> traffic;
  h.record_traffic(&traffic);
  h.access(60, 8, Access::load);
  h.access(60, 8, Access::load);
  CHECK(h.counters(0).loads() == 2);
  CHECK(h.counters(0).load_misses() == 1);
  CHECK(h.counters(1).load_misses() == 1);
  CHECK(traffic.size() == 2);
  h.access(124, 8, Access::load); // one of its lines is there
  CHECK(h.counters(0).load_misses() == 2);
  CHECK(traffic.size() == 3);
}

TEST_CASE("fetches have a first level of their own") {
  Result<Hierarchy> made = Hierarchy::create({small, large}, small);
  REQUIRE(made);
  Hierarchy& h = *made;
  h.access(64, 4, Access::load);
  h.access(64, 4, Access::fetch);
  h.access(68, 4, Access::fetch);
  CHECK(h.counters(0).fetches() == 2);
  CHECK(h.counters(0).fetch_misses() == 1);
  CHECK(h.counters(1).fetches() == 1);
  CHECK(h.counters(1).fetch_misses() == 0);
}

TEST_CASE("a flush writes a dirty line once, however many levels hold it") {
  for (const bool evict : {false, true}) {
    Hierarchy h = make({small, large});
    std::vector<Traffic> traffic;
    h.access(64, 8, Access::store);
    h.record_traffic(&traffic);
    h.flush(64, evict);
    h.flush(64, evict);
    REQUIRE(traffic.size() == 1);
    CHECK(traffic[0].write);
    h.access(64, 8, Access::load);
    CHECK(h.counters(0).load_misses() == (evict ? 1u : 0u));
  }
}

TEST_CASE("a prefetcher brings lines in through the levels below") {
  Hierarchy h = make({small, large});
  std::vector<Traffic> traffic;
  h.record_traffic(&traffic);
  h.set_prefetcher(0, std::make_unique<NextLine>());
  h.access(64, 8, Access::load);
  h.access(128, 8, Access::load);
  CHECK(h.counters(0).load_misses() == 1);
  CHECK(h.counters(0).prefetches == 1);
  CHECK(h.counters(1).prefetches == 1);
  CHECK(h.counters(1).loads() == 1);
  CHECK(traffic.size() == 2);
}

TEST_CASE("a TLB walks for pages that no level knows") {
  Hierarchy h = make({small});
  Result<cache::Tlb> tlb = cache::Tlb::create({{2, 2}, {4, 4}});
  REQUIRE(tlb);
  h.set_tlb(std::move(*tlb));
  for (const std::uint64_t page : {0u, 1u, 2u, 0u, 3u, 4u, 1u})
    h.access(page * 4096 + 8, 8, Access::load);
  CHECK(h.tlb()->lookups() == 7);
  CHECK(h.tlb()->walks() == 6); // 0 was in the second level; 1 was pushed out of it by 4
  CHECK(cache::Tlb::create({}).error().code == Errc::bad_input);
  CHECK(cache::Tlb::create({{3, 4}}).error().code == Errc::bad_input);
}

TEST_CASE("levels that do not fit together are refused") {
  CHECK(Hierarchy::create({}).error().code == Errc::bad_input);
  CHECK(Hierarchy::create({small, {4 * 128, 4, 128}}).error().code == Errc::bad_input);
  CHECK(Hierarchy::create({small, {64, 4}}).error().code == Errc::bad_input);
}
