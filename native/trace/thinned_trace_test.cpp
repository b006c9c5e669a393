#include "trace/thinned_trace.hpp"

#include <doctest/doctest.h>
#include <string>

#include "os/file.hpp"
#include "test_support.hpp"
#include "trace/writer.hpp"

using namespace nearfar;
using namespace nearfar::trace;

namespace {

/// A chain of loads over so many blocks, in a file that goes when it does.
class Chain {
public:
  explicit Chain(std::uint64_t blocks) {
    Result<os::File> file = os::create_new(path.c_str());
    REQUIRE(file);
    TraceWriter writer(file->fd(), Header{});
    writer.thread(0);
    Site site;
    site.kind = SiteKind::heap;
    Object object;
    object.site = writer.site(site);
    object.bytes = blocks * block_records * 64;
    const std::uint32_t number = writer.object(object);
    for (std::uint64_t i = 0; i < blocks * block_records; ++i)
      writer.record({i, 1, i + 1, number, i > 0, 0, RecordKind::load});
    writer.totals[Total::instructions] = blocks * block_records;
    REQUIRE(writer.finish());
  }

  test::Folder folder = test::Folder::quick();
  std::string path = folder.path("trace");
};

std::vector<StallModel> accounts(std::size_t count) {
  std::vector<StallModel> made;
  for (std::size_t i = 0; i < count; ++i) {
    SitePlacement placing;
    placing.memories[0] = placing.memories[1] = {100.0 * (static_cast<double>(i) + 1), 1, 1, 0, 21};
    placing.core = {0, 256, 10, 1536, 12};
    Result<StallModel> costs = StallModel::create(placing);
    REQUIRE(costs);
    made.push_back(std::move(*costs));
  }
  return made;
}

} // namespace

TEST_CASE("a short trace is kept whole, and each account gets all of it") {
  const Chain chain(3);
  Result<ThinnedTrace> sampled = ThinnedTrace::read(chain.path.c_str(), 1 << 20);
  REQUIRE(sampled);
  CHECK(sampled->every() == 1);
  CHECK(sampled->blocks().size() == 3);
  const std::vector<Cost> costs = sampled->costs(accounts(5));
  REQUIRE(costs.size() == 5);
  for (std::size_t i = 0; i < 5; ++i)
    CHECK(costs[i].time_ns ==
          doctest::Approx(3.0 * block_records * 100 * (static_cast<double>(i) + 1)));
}

TEST_CASE("of a long trace every Nth block is kept, and all records are counted") {
  const Chain chain(11);
  Result<ThinnedTrace> sampled = ThinnedTrace::read(chain.path.c_str(), 3 * block_records);
  REQUIRE(sampled);
  CHECK(sampled->every() == 4);
  REQUIRE(sampled->blocks().size() == 3); // 0, 4, 8
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(sampled->blocks()[i].front().line == 4 * i * block_records);
  CHECK(sampled->counts().all[0] == 11 * block_records);
  CHECK(sampled->counts().sites[1][0] == 11 * block_records);
  CHECK(sampled->counts().dependent == 11 * block_records - 1);
  CHECK(sampled->touched().small.count() == 11 * block_records / 64);
  CHECK(sampled->touched().small.peak_non_heap_pages() == 0);
  CHECK(sampled->reader().complete());
}

TEST_CASE("a page belongs to the heap where the heap uses any of it, and counts once") {
  Tables tables;
  tables.sites.resize(2);
  tables.sites[1].kind = SiteKind::heap;
  tables.objects.resize(2);
  tables.objects[1].site = 1;
  std::vector<Record> records;
  for (std::uint64_t i = 0; i < 640; ++i)
    records.push_back(
        {i % 320, 1, i, i % 2 ? 1u : 0u, 0, 0, RecordKind::load}); // even lines are unknown
  FirstTouches touched;
  add_pages(records, tables, touched);
  add_pages(records, tables, touched);
  CHECK(touched.small.count() == 5);
  CHECK(touched.small.faults() == std::vector<std::uint64_t>{0, 5});
  CHECK(touched.large.faults() == std::vector<std::uint64_t>{0, 1});
}

TEST_CASE("a page that was unmapped is touched first again, and one that was moved is not") {
  constexpr std::uint64_t page = 4096, line = 64;
  PageTouches pages(small_page_shift);
  const auto touch_all = [&](std::uint64_t begin) {
    for (std::uint64_t at = begin; at < begin + 4 * page; at += line)
      pages.add(at / line, {1, true});
  };
  touch_all(16 * page);
  touch_all(16 * page);
  CHECK(pages.faults()[1] == 4);
  pages.moved(16 * page, 64 * page, 4 * page);
  touch_all(64 * page);
  CHECK(pages.faults()[1] == 4);
  pages.unmapped(64 * page, 66 * page + 1); // of a part of a page no more is known
  touch_all(64 * page);
  CHECK(pages.faults()[1] == 6);
  touch_all(16 * page);
  CHECK(pages.faults()[1] == 10);
}

TEST_CASE("most pages of no allocation at once are counted, not all that there were") {
  PageTouches pages(small_page_shift);
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t page = 0; page < 8; ++page)
      pages.add(page * 64, {2, false});
    pages.unmapped(0, 8 * 4096);
  }
  CHECK(pages.count() == 24);
  CHECK(pages.peak_non_heap_pages() == 8);
}

TEST_CASE("a file that is not a trace is not sampled") {
  CHECK(!ThinnedTrace::read("/dev/null", 1));
}
