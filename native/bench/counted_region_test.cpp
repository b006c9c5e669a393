#include "bench/counted_region.hpp"

#include <doctest/doctest.h>

#include "os/pages.hpp"

using namespace nearfar;
using namespace nearfar::bench;

namespace {

constexpr const char* faults = "perf::PERF_COUNT_SW_PAGE_FAULTS";
constexpr std::size_t pages = 100;
/// Touched outside of the region each time: many more than those within, which fault twice or
/// thrice where a sanitizer has memory of its own for each.
constexpr std::size_t other_pages = 20 * pages;

void touch(std::size_t count) {
  auto range = os::map_range(count * 4096, os::PageSize::small_4k, -1, false);
  REQUIRE(bool(range));
  os::prefault(*range);
}

} // namespace

TEST_CASE("only what happens within the region is counted, in each turn anew") {
  Result<CountedRegion> made =
      CountedRegion::create({{faults}, {"perf::PERF_COUNT_SW_TASK_CLOCK"}}, 1);
  if (!made) { // no libpfm4, or a kernel that permits nothing: both say so
    CHECK((made.error().code == Errc::unsupported || made.error().code == Errc::no_permission));
    return;
  }
  for (int turn = 0; turn < 2; ++turn) {
    touch(other_pages);
    REQUIRE(bool(made->prepare(0)));
    touch(other_pages);
    made->begin(0);
    touch(pages);
    made->end(0);
    touch(other_pages);
    Result<std::vector<Counted>> seen = made->counted();
    REQUIRE(bool(seen));
    REQUIRE(seen->size() == 2);
    CHECK((*seen)[0].name == faults);
    CHECK((*seen)[0].value >= pages);
    CHECK((*seen)[0].value < other_pages);
    CHECK((*seen)[0].share > 0.9);
    CHECK((*seen)[1].value > 0);
  }
}

TEST_CASE("events that no processor has are refused before anything runs") {
  Result<CountedRegion> made = CountedRegion::create({{"NO_SUCH_EVENT"}}, 1);
  REQUIRE(!made);
  CHECK((made.error().code == Errc::not_found || made.error().code == Errc::unsupported));
}
