#include "trace/live_bytes.hpp"

#include <doctest/doctest.h>

using namespace nearfar::trace;

namespace {

Object object(std::uint32_t site, std::uint64_t bytes, std::uint64_t born, std::uint64_t died) {
  Object made;
  made.site = site;
  made.bytes = bytes;
  made.born_record = born;
  made.died_record = died;
  return made;
}

} // namespace

TEST_CASE("what a site holds, part by part") {
  Tables tables;
  tables.sites.resize(3);
  tables.objects.push_back(object(1, 100, 0, 50));
  tables.objects.push_back(object(1, 30, 25, 30));
  tables.objects.push_back(object(2, 7, 50, alive));
  const std::vector<LiveBytes> found = live_bytes(tables, 100, 4);
  CHECK(found[1].max_bytes == std::vector<std::uint64_t>{100, 130, 100, 0});
  CHECK(found[2].max_bytes == std::vector<std::uint64_t>{0, 0, 7, 7});
  CHECK(found[2].mean_share == doctest::Approx(0.5));
  CHECK(found[1].mean_share == doctest::Approx((100 * 50 + 30 * 5) / 130.0 / 100));
}

TEST_CASE("a trace without records has no live bytes") {
  Tables tables;
  tables.sites.resize(2);
  CHECK(live_bytes(tables, 0, 2)[1].max_bytes == std::vector<std::uint64_t>{0, 0});
}
