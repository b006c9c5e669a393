#include "trace/cache_filter.hpp"

#include <doctest/doctest.h>

#include "base/random.hpp"
#include "cache/hierarchy.hpp"

using namespace nearfar;
using namespace nearfar::trace;

namespace {

constexpr cache::Geometry first{4096, 4};
constexpr cache::Geometry second{16384, 8};
constexpr cache::Geometry last{65536, 16};

HierarchyConfig plan(After after) {
  HierarchyConfig made;
  made.l2 = second;
  made.llc = last;
  made.prefetch = false;
  made.after = after;
  return made;
}

} // namespace

TEST_CASE("behind a first level, the filter counts what a hierarchy counts") {
  Result<cache::Hierarchy> whole = cache::Hierarchy::create({first, second, last});
  Result<cache::Cache> l1 = cache::Cache::create(first);
  Result<CacheFilter> filter = CacheFilter::create(plan(After::llc));
  REQUIRE(whole);
  REQUIRE(l1);
  REQUIRE(filter);
  std::vector<cache::Traffic> traffic;
  whole->record_traffic(&traffic);
  Random random(3);
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t line = random.below(3) == 0 ? random.below(4000) : random.below(300);
    const bool store = random.below(4) == 0;
    whole->access(line * 64, 8, store ? cache::Access::store : cache::Access::load);
    if (l1->touch(line, store)) continue;
    const cache::Victim victim = l1->fill(line, store);
    if (victim.present && victim.dirty) filter->write_back(0, victim.line);
    filter->missed(0, line, store ? RecordKind::store : RecordKind::load);
  }
  const auto misses = [&](std::size_t level) {
    return whole->counters(level).load_misses() + whole->counters(level).store_misses();
  };
  CHECK(filter->totals[Total::l2_misses] == misses(1));
  CHECK(filter->totals[Total::llc_misses] == misses(2));
  std::uint64_t written = 0;
  for (const cache::Traffic& one : traffic)
    written += one.write;
  CHECK(filter->totals[Total::writebacks] == written);
  CHECK(filter->transfers.size() == traffic.size());
}

TEST_CASE("last levels of other sizes count their own misses, and change nothing") {
  constexpr cache::Geometry large{131072, 16};
  constexpr cache::Geometry small{32768, 16};
  const auto misses_of = [](const cache::Geometry& llc, std::vector<cache::Geometry> others) {
    HierarchyConfig made = plan(After::llc);
    made.llc = llc;
    made.other_llcs = std::move(others);
    made.prefetch = true;
    Result<CacheFilter> filter = CacheFilter::create(made);
    REQUIRE(filter);
    Random random(5);
    for (int i = 0; i < 100'000; ++i) {
      const std::uint64_t line = random.below(1500);
      if (random.below(50) == 0)
        filter->nt_store(0, line);
      else
        filter->missed(0, line, RecordKind::load);
    }
    std::vector<std::uint64_t> found = filter->other_llc_misses;
    found.insert(found.begin(), filter->totals[Total::llc_misses]);
    return found;
  };
  const std::vector<std::uint64_t> all = misses_of(last, {small, large});
  CHECK(all == std::vector<std::uint64_t>{misses_of(last, {})[0], misses_of(small, {})[0],
                                          misses_of(large, {})[0]});
  CHECK(all[1] > all[0]);
  CHECK(all[0] > all[2]);
}

TEST_CASE("misses of the selected level pass") {
  for (const After after : {After::l1, After::l2, After::llc}) {
    Result<CacheFilter> filter = CacheFilter::create(plan(after));
    REQUIRE(filter);
    filter->missed(0, 7, RecordKind::load);
    filter->missed(0, 7, RecordKind::load);
    CHECK(filter->transfers.size() == (after == After::l1 ? 2 : 1));
    filter->write_back(0, 7); // held below: it stops there
    CHECK(filter->transfers.size() == (after == After::l1 ? 3 : 1));
    filter->nt_store(0, 7); // drives the dirty line out first
    const auto& transfers = filter->transfers;
    CHECK(transfers.back().kind == RecordKind::nt_store);
    if (after != After::l1) CHECK(transfers[transfers.size() - 2].kind == RecordKind::write_back);
    CHECK(filter->totals[Total::writebacks] == 1);
  }
}

TEST_CASE("cores have their own second level, and share the last") {
  HierarchyConfig two = plan(After::llc);
  two.cores = 2;
  Result<CacheFilter> filter = CacheFilter::create(two);
  REQUIRE(filter);
  filter->missed(0, 7, RecordKind::load);
  filter->missed(1, 7, RecordKind::load);
  filter->missed(2, 7, RecordKind::load); // the first core again
  CHECK(filter->totals[Total::l2_misses] == 2);
  CHECK(filter->totals[Total::llc_misses] == 1);
}

TEST_CASE("a stream is prefetched, and random lines are not") {
  HierarchyConfig ahead = plan(After::llc);
  ahead.prefetch = true;
  Result<CacheFilter> filter = CacheFilter::create(ahead);
  REQUIRE(filter);
  for (std::uint64_t line = 0; line < 640; ++line)
    filter->missed(0, line, RecordKind::load);
  CHECK(filter->totals[Total::llc_misses] < 40); // the first lines of each page
  CHECK(filter->totals[Total::prefetches] > 600);
  CHECK(filter->totals[Total::prefetches] <= 640); // none beyond its page
  const std::uint64_t before = filter->totals[Total::prefetches];
  Random random(5);
  for (int i = 0; i < 1000; ++i)
    filter->missed(0, random.below(1u << 30), RecordKind::load);
  CHECK(filter->totals[Total::prefetches] == before);
}

TEST_CASE("walks of the TLB are counted by page") {
  HierarchyConfig with_tlb = plan(After::llc);
  with_tlb.tlb = {{16, 4}};
  Result<CacheFilter> filter = CacheFilter::create(with_tlb);
  REQUIRE(filter);
  for (std::uint64_t line = 0; line < 64 * 4; ++line)
    filter->missed(0, line, RecordKind::load);
  CHECK(filter->totals[Total::tlb_walks] == 4);
}

TEST_CASE("a last level that is not there cannot be traced after") {
  HierarchyConfig none = plan(After::llc);
  none.llc.reset();
  CHECK(CacheFilter::create(none).error().code == Errc::bad_input);
  none.after = After::l2;
  Result<CacheFilter> filter = CacheFilter::create(none);
  REQUIRE(filter);
  filter->missed(0, 7, RecordKind::store);
  CHECK(filter->totals[Total::llc_misses] == 1);
}
