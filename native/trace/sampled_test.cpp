#include "trace/sampled.hpp"

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
    Writer writer(file->fd(), Header{});
    writer.thread(0);
    Site site;
    site.kind = SiteKind::heap;
    Object object;
    object.site = writer.site(site);
    object.bytes = blocks * block_records * 64;
    const std::uint32_t number = writer.object(object);
    for (std::uint64_t i = 0; i < blocks * block_records; ++i)
      writer.record({i, 1, i + 1, number, i > 0, 0, Kind::load});
    writer.totals[Total::instructions] = blocks * block_records;
    REQUIRE(writer.finish());
  }

  test::Folder folder = test::Folder::quick();
  std::string path = folder.path("trace");
};

std::vector<Costs> accounts(std::size_t count) {
  std::vector<Costs> made;
  for (std::size_t i = 0; i < count; ++i) {
    Placing placing;
    placing.memories[0] = placing.memories[1] = {100.0 * (static_cast<double>(i) + 1), 1, 1, 0, 21};
    placing.core = {0, 256, 10, 1536, 12};
    Result<Costs> costs = Costs::create(placing);
    REQUIRE(costs);
    made.push_back(std::move(*costs));
  }
  return made;
}

} // namespace

TEST_CASE("a short trace is kept whole, and each account gets all of it") {
  const Chain chain(3);
  Result<Sampled> sampled = Sampled::read(chain.path.c_str(), 1 << 20);
  REQUIRE(sampled);
  CHECK(sampled->every() == 1);
  CHECK(sampled->blocks().size() == 3);
  const std::vector<Cost> costs = sampled->costs(accounts(5));
  REQUIRE(costs.size() == 5);
  for (std::size_t i = 0; i < 5; ++i)
    CHECK(costs[i].time_ns ==
          doctest::Approx(3.0 * block_records * 100 * (static_cast<double>(i) + 1)));
}

TEST_CASE("of a long trace every so-manyth block is kept, and all records are counted") {
  const Chain chain(11);
  Result<Sampled> sampled = Sampled::read(chain.path.c_str(), 3 * block_records);
  REQUIRE(sampled);
  CHECK(sampled->every() == 4);
  REQUIRE(sampled->blocks().size() == 3); // 0, 4, 8
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(sampled->blocks()[i].front().line == 4 * i * block_records);
  CHECK(sampled->counts().all[0] == 11 * block_records);
  CHECK(sampled->counts().sites[1][0] == 11 * block_records);
  CHECK(sampled->counts().dependent == 11 * block_records - 1);
  CHECK(sampled->pages().count() == 11 * block_records / 64);
  CHECK(sampled->pages().fixed() == 0);
  CHECK(sampled->reader().complete());
}

TEST_CASE("pages that no allocation made are counted once") {
  Tables tables;
  tables.sites.resize(2);
  tables.sites[1].kind = SiteKind::heap;
  tables.objects.resize(2);
  tables.objects[1].site = 1;
  std::vector<Record> records;
  for (std::uint64_t i = 0; i < 640; ++i)
    records.push_back({i % 320, 1, i, i % 2 ? 1u : 0u, 0, 0, Kind::load}); // even lines are unknown
  Pages pages;
  add_pages(records, tables, pages);
  add_pages(records, tables, pages);
  CHECK(pages.count() == 5);
  CHECK(pages.fixed() == 5);
}

TEST_CASE("what is no trace is not sampled") { CHECK(!Sampled::read("/dev/null", 1)); }
